// "Somebody is typing", for ten seconds or until the message is there.

import { find } from "./dom.js";
import { app, on, person } from "./state.js";

const SECONDS = 10;
const typists = new Map(); // channel:user -> until when

export function drawTyping() {
  const names = [];
  for (const [key, until] of typists) {
    const [channel, user] = key.split(":");
    if (until < Date.now()) typists.delete(key);
    else if (channel === app.here) names.push(person(user).name);
  }
  const words = names.length ? `${names.join(", ")} ${names.length === 1 ? "is" : "are"} typing` : "";
  const line = find("typing");
  if (line.textContent !== words) line.textContent = words;
  line.classList.toggle("on", Boolean(words));
}

on("stream:typing", ({ channel, user }) => {
  typists.set(`${channel}:${user}`, Date.now() + SECONDS * 1000);
  drawTyping();
});
on("heard", (message) => {
  if (typists.delete(`${message.channel}:${message.author.id}`)) drawTyping();
});
setInterval(drawTyping, 1000);
