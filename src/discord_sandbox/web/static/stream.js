// The one live connection: a websocket that follows the server's log and comes back by itself.

import { loadState } from "./api.js";
import { app, emit } from "./state.js";

const PAUSES = [250, 500, 1000, 2000, 4000];
let socket = null;
let failures = 0;
let timer = null;
let head = 0;

export function follow(after) {
  head = after;
  open();
}

function open() {
  clearTimeout(timer);
  if (socket) {
    socket.onclose = null;
    socket.close();
  }
  const opened = new WebSocket(`ws://${location.host}/page/people/${app.me}/stream?after=${head}&run=${app.world.run}`);
  socket = opened;
  let served = false;
  opened.onopen = () => {
    served = true;
    failures = 0;
    emit("connected", true);
  };
  opened.onmessage = (frame) => {
    const { head: seen, events } = JSON.parse(frame.data);
    head = seen;
    for (const event of events) emit(`stream:${event.type}`, event);
    if (events.length) emit("changed");
  };
  opened.onclose = () => {
    emit("connected", false);
    if (!served) findOut();
    timer = setTimeout(open, PAUSES[Math.min(failures, PAUSES.length - 1)]);
    failures += 1;
  };
}

/** A refused websocket does not say why. An ordinary request does: the sandbox is away, or it no longer knows this page. */
async function findOut() {
  const world = await loadState(app.me).catch(() => null);
  if (world && world.run !== app.world.run) emit("stream:reset");
}

/** A page that was asleep looks again at once. */
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible" || !socket || socket.readyState === WebSocket.OPEN) return;
  failures = 0;
  open();
});

/** Loses the connection on purpose, to see that it comes back. */
export function drop() {
  if (socket) socket.close();
}
