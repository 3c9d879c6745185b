// Requests to the sandbox, always as somebody. Errors carry the server's words.

import { app, emit } from "./state.js";

async function call(method, path, body) {
  const options = { method, headers: {} };
  if (method !== "GET") {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body || {});
  }
  let response;
  try {
    response = await fetch(`/page/${path}`, options);
  } catch {
    throw new Error("The sandbox does not respond. Is it still running in the terminal?");
  }
  if (response.status === 401) {
    emit("locked");
    throw new Error("Open the page again with the address that was printed in the terminal.");
  }
  const value = await response.json();
  if (!response.ok || value.refused)
    throw new Error(value.refused || value.error || `The sandbox returned status ${response.status}.`);
  return value;
}

const mine = (path) => `people/${app.me}/${path}`;

export const loadState = (who) => call("GET", `people/${encodeURIComponent(who)}/state`);
export const loadMessages = (channel, limit) => call("GET", mine(`messages?channel=${channel}&limit=${limit}`));
export const loadCommands = (channel) => call("GET", mine(`commands?channel=${channel}`));
export const say = (channel, body) => call("POST", mine("messages"), { channel, ...body });
export const edit = (channel, id, content) => call("PATCH", mine(`messages/${id}`), { channel, content });
export const remove = (channel, id) => call("DELETE", mine(`messages/${id}`), { channel });
export const react = (channel, message, emoji, off) =>
  call("POST", mine("reactions"), { channel, message, emoji, remove: off });
export const markRead = (who, channel) => call("POST", `people/${who}/read`, { channel });
export const typing = (channel) => call("POST", mine("typing"), { channel });
export const openDirect = (other) => call("POST", mine("dm"), { with: other });
export const press = (channel, message, id, values) =>
  call("POST", mine("press"), { channel, message, custom_id: id, values });
export const submit = (interaction, values) => call("POST", mine("submit"), { interaction, values });
export const command = (channel, line, options, focused) =>
  call("POST", mine("command"), { channel, line, options, focused });
export const restart = () => call("POST", "restart");
