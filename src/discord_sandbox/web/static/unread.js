// What the person has not read: new messages per channel, and which of them mention the person.

import { markRead } from "./api.js";
import { app, emit, on } from "./state.js";

/** Takes over what the server knows, when somebody else acts or the page is loaded. */
export function adoptUnread(known) {
  app.unread = new Map(Object.entries(known || {}).map(([channel, pings]) => [channel, new Set(pings)]));
}

/** How many unread messages of a channel mention the person; undefined if nothing is new. */
export const pingsIn = (channel) => app.unread.get(channel)?.size;

export const pingsInAll = () => [...app.unread.values()].reduce((sum, pings) => sum + pings.size, 0);

/** The open channel is read. If the server does not hear of it, the next visit tells it again. */
export function readHere() {
  app.unread.delete(app.here);
  if (app.here) markRead(app.me, app.here).catch(() => {});
}

on("stream:message", ({ message, created }) => {
  if (!created || message.author.id === app.me || message.private) return;
  if (message.channel === app.here) return readHere();
  const pings = app.unread.get(message.channel) || new Set();
  if (message.pings) pings.add(message.id);
  app.unread.set(message.channel, pings);
  emit("unread");
});
on("stream:gone", ({ channel, message }) => {
  if (app.unread.get(channel)?.delete(message)) emit("unread");
});
