// The open channel's messages: loaded, streamed in, edited in place, and scrolled like a chat.

import { loadMessages } from "./api.js";
import { fill, find, h } from "./dom.js";
import { attempt, continues, messageElement } from "./message.js";
import { app, emit, older, on } from "./state.js";

const PAGE = 400;
const MOST = 5000; // the most that the server sends
const list = find("messages");
const scroller = find("scroller");
const toEnd = find("to-end");
let order = []; // ids, oldest first
let limit = PAGE;
let missed = null; // what streamed in while the channel was being loaded
let position = 0; // where the view was when it last moved
let stuck = true; // whether the view follows the newest message

const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;

scroller.addEventListener(
  "scroll",
  () => {
    // Only a person moves up. Messages that grow when the browser first paints them leave the position as it is.
    const up = scroller.scrollTop < position - 1;
    position = scroller.scrollTop;
    stuck = atEnd() || (stuck && !up);
    if (stuck) toEnd.hidden = true;
  },
  { passive: true },
);
toEnd.addEventListener("click", () => {
  stuck = true;
  settle();
});

/** One message can be reached with Tab; arrows move from there to the others. */
function rove() {
  const last = list.lastElementChild;
  if (!last || last.tabIndex === 0) return;
  for (const one of list.querySelectorAll('[tabindex="0"].message')) one.tabIndex = -1;
  if (last.classList.contains("message")) last.tabIndex = 0;
}

const MOVES = { ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" };
list.addEventListener("keydown", (event) => {
  if (!event.target.classList.contains("message")) return;
  const next =
    event.key === "Home"
      ? list.firstElementChild
      : event.key === "End"
        ? list.lastElementChild
        : event.target[MOVES[event.key]];
  if (!next || !(event.key in MOVES || ["Home", "End"].includes(event.key))) return;
  event.preventDefault();
  next.focus();
});

function settle() {
  rove();
  if (!stuck) return;
  scroller.scrollTop = order.length ? scroller.scrollHeight : 0; // an empty place is read from its welcome on
  toEnd.hidden = true;
}

/** Pictures and unfolded parts change the height after the fact. */
new ResizeObserver(() => stuck && settle()).observe(list);

export async function openMessages(channel) {
  limit = PAGE;
  toEnd.hidden = true;
  stuck = true;
  await load(channel);
}

/** Shows one message of the open channel. Returns false if it is not there: it was deleted, or it is not for this person. */
export async function showMessage(id) {
  if (!elementOf(id)) {
    limit = MOST;
    await load(app.here);
  }
  const shell = elementOf(id);
  if (!shell) return false;
  stuck = false;
  shell.scrollIntoView({ block: "center" });
  shell.classList.remove("pointed-at");
  requestAnimationFrame(() => shell.classList.add("pointed-at"));
  shell.focus({ preventScroll: true });
  return true;
}

async function load(channel) {
  const waiting = [];
  missed = waiting;
  const page = await attempt(() => loadMessages(channel, limit));
  if (missed === waiting) missed = null;
  if (!page || app.here !== channel || missed) return;
  app.messages = new Map(page.messages.map((one) => [one.id, one]));
  order = page.messages.map((one) => one.id);
  // Not announced one by one: the log is live for what comes later.
  scroller.setAttribute("aria-live", "off");
  fill(list, [
    page.more && more(channel),
    order.map((id, n) => messageElement(app.messages.get(id), app.messages.get(order[n - 1]))),
  ]);
  // The page may be older than what came over the stream meanwhile.
  for (const apply of waiting) apply();
  requestAnimationFrame(() => scroller.setAttribute("aria-live", "polite"));
  settle();
  emit("messages");
}

function more(channel) {
  return h(
    "li",
    { class: "more" },
    h(
      "button",
      {
        type: "button",
        class: "button secondary",
        onclick: () => {
          limit += PAGE;
          stuck = false;
          load(channel);
        },
      },
      "Show older messages",
    ),
  );
}

const elementOf = (id) => list.querySelector(`.message[data-id="${id}"]`);

function put(message) {
  const known = app.messages.has(message.id);
  app.messages.set(message.id, message);
  if (known) return replace(message);
  const last = order[order.length - 1];
  if (last && older(message.id, last)) {
    order.push(message.id);
    order.sort((a, b) => (older(a, b) ? -1 : 1));
    const next = order[order.indexOf(message.id) + 1];
    elementOf(next).before(messageElement(message, before(message.id)));
    return null;
  }
  order.push(message.id);
  list.append(messageElement(message, app.messages.get(last)));
  return null;
}

const before = (id) => app.messages.get(order[order.indexOf(id) - 1]);

function replace(message) {
  const old = elementOf(message.id);
  if (!old || old.querySelector(".edit-box")) return;
  const focused = old.contains(document.activeElement) ? document.activeElement.dataset.key || "" : null;
  const failed = old.querySelector(".failed");
  const fresh = messageElement(message, before(message.id));
  if (failed && fresh.querySelector("[data-key]")) fresh.querySelector(".message-body").append(failed);
  old.replaceWith(fresh);
  if (focused === null) return;
  // The button may be gone now, but the keyboard must not fall back to the top of the page.
  const again = focused && fresh.querySelector(`[data-key="${CSS.escape(focused)}"]`);
  (again || fresh).focus({ preventScroll: true });
}

function drop(id) {
  if (!app.messages.delete(id)) return;
  const next = order[order.indexOf(id) + 1];
  order = order.filter((one) => one !== id);
  elementOf(id)?.remove();
  const below = next && app.messages.get(next);
  if (below && elementOf(next)?.classList.contains("continued") && !continues(below, before(next))) replace(below);
}

function take(message) {
  const mine = message.author.id === app.me;
  const known = app.messages.has(message.id);
  put(message);
  if (mine && message.id === order[order.length - 1]) stuck = true;
  if (!known && !stuck) toEnd.hidden = false;
}

on("stream:message", ({ message }) => {
  if (message.channel === app.here) {
    if (missed) missed.push(() => take(message));
    else take(message);
  }
  emit("heard", message);
});
on("stream:gone", ({ channel, message }) => {
  if (channel !== app.here) return;
  if (missed) missed.push(() => drop(message));
  else drop(message);
});
on("changed", () => {
  settle();
  emit("messages");
});
on("names", () => {
  for (const id of order) {
    const shell = elementOf(id);
    if (shell && shell.querySelector('.mention[data-kind="channel"]')) replace(app.messages.get(id));
  }
});
