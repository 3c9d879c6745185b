// Links to channels and messages of Discord: they lead to the same place in this page.

import { emit, place } from "./state.js";

const LINK = /^https?:\/\/(?:(?:canary|ptb)\.)?discord(?:app)?\.com\/channels\/(?:\d+|@me)\/(\d+)(?:\/(\d+))?\/?$/i;

/** The channel and message that an address of Discord names, or null for any other address. */
export function target(address) {
  const match = LINK.exec(address || "");
  return match ? { channel: match[1], message: match[2] || null } : null;
}

/** Makes a link lead to its place in this page. Returns whether it is such a link. */
export function keepHere(link) {
  const to = target(link.getAttribute("href"));
  if (!to) return false;
  if (link.textContent === link.getAttribute("href")) {
    const known = place(to.channel);
    link.textContent = `${known ? `#${known.name}` : "#no-access"}${to.message ? " › message" : ""}`;
    link.classList.add("mention");
  }
  link.removeAttribute("target");
  link.addEventListener("click", (event) => {
    event.preventDefault();
    emit("jump", to);
  });
  return true;
}
