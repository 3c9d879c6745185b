// Times as text, and countdowns that tick.

import { now } from "./state.js";

const STYLES = {
  t: { timeStyle: "short" },
  T: { timeStyle: "medium" },
  d: { dateStyle: "short" },
  D: { dateStyle: "long" },
  f: { dateStyle: "long", timeStyle: "short" },
  F: { dateStyle: "full", timeStyle: "short" },
};
// Made once: making one takes longer than using it a hundred times.
const FORMATS = Object.fromEntries(
  Object.entries(STYLES).map(([name, style]) => [name, new Intl.DateTimeFormat([], style)]),
);
const WHOLE = new Intl.DateTimeFormat([], { dateStyle: "full", timeStyle: "medium" });
const EARLIER = new Intl.DateTimeFormat([], { dateStyle: "short", timeStyle: "short" });
const LONG = [
  [31536000, "year"],
  [2592000, "month"],
  [86400, "day"],
  [3600, "hour"],
  [60, "minute"],
];

function span(seconds) {
  if (seconds < 60) return `${seconds} ${seconds === 1 ? "second" : "seconds"}`;
  if (seconds < 600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  const [size, unit] = LONG.find(([size]) => seconds >= size);
  const count = Math.round(seconds / size);
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

export function relative(stamp) {
  const left = Math.round(stamp - now() / 1000);
  if (left === 0) return "now";
  return left > 0 ? `in ${span(left)}` : `${span(-left)} ago`;
}

export function tell(element) {
  const stamp = Number(element.dataset.stamp);
  const date = new Date(stamp * 1000);
  if (!element.title) element.title = WHOLE.format(date);
  const text = element.dataset.style === "R" ? relative(stamp) : FORMATS[element.dataset.style].format(date);
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle(
    "soon",
    element.dataset.style === "R" && stamp * 1000 > now() && stamp * 1000 - now() < 60000,
  );
}

export function tellAll(root) {
  for (const element of root.querySelectorAll("time[data-stamp]")) tell(element);
}

setInterval(() => {
  for (const element of document.querySelectorAll('time[data-style="R"]')) tell(element);
}, 1000);

/** When a message was written: the time today, the date before. */
export function stamp(iso) {
  const date = new Date(iso);
  const today = new Date(now()).toDateString() === date.toDateString();
  return (today ? FORMATS.t : EARLIER).format(date);
}
