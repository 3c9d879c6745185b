// Starts the page, keeps its address, and joins the parts: who acts, which channel is open, whether the bot is there.

import { loadState, restart } from "./api.js";
import { buildComposer, clearComposer, drawComposer, focusComposer } from "./composer.js";
import "./drawers.js";
import { fill, find, h, icon, marks, speak } from "./dom.js";
import { drawHint, drawWelcome } from "./guide.js";
import "./inspector.js";
import { attempt } from "./message.js";
import { openMessages, showMessage } from "./messages.js";
import { drawPeople } from "./people.js";
import { drawPlaces } from "./places.js";
import { app, emit, firstPlace, on, person, place, self } from "./state.js";
import { follow } from "./stream.js";
import "./theme.js";
import { drawTyping } from "./typing.js";
import { adoptUnread, pingsInAll, readHere } from "./unread.js";

const RECOVERED_SECONDS = 8;
const RECOVERED = "The sandbox was restarted. This is its present state.";
const awaited = new Set(); // own messages whose thread is followed when the bot opens it

function address() {
  const known = new URLSearchParams(location.hash.slice(1));
  return { as: known.get("as"), at: known.get("at") };
}

function remember() {
  const hash = `#${new URLSearchParams({ as: self().name, at: app.here || "" })}`;
  if (location.hash !== hash) history.replaceState(null, "", hash);
  drawTabTitle();
}

/** The title of the browser's tab, with the number of unread mentions, as in Discord. */
function drawTabTitle() {
  const pings = pingsInAll();
  document.title = `${pings ? `(${pings}) ` : ""}${place(app.here)?.name || app.world.bot.name} · Discord sandbox`;
  find("open-places").classList.toggle("has-pings", pings > 0);
}

function adopt(world) {
  const before = app.world;
  app.world = { ...(before || {}), ...world };
  app.me = world.me;
  app.skew = world.now * 1000 - Date.now();
  if (app.world.guide?.mark) marks.set(world.bot.id, app.world.guide.mark);
}

function draw() {
  drawPlaces();
  drawPeople();
  drawTitle();
  drawBot();
  drawComposer();
}

function drawTitle() {
  const here = place(app.here);
  const mark = (text) => h("span", { class: "mark", "aria-hidden": "true" }, text);
  if (!here) return fill(find("title"), ["No channel"]);
  if (here.kind === "thread") {
    const up = h(
      "button",
      { type: "button", class: "as-link up", onclick: () => go(here.channel.id) },
      `#${here.channel.name}`,
    );
    return fill(find("title"), [
      up,
      h("span", { class: "mark", "aria-hidden": "true" }, "›"),
      h("span", { class: "title-name" }, here.name),
    ]);
  }
  return fill(find("title"), [mark(here.kind === "direct" ? "@" : "#"), h("span", { class: "title-name" }, here.name)]);
}

function drawBot() {
  const { online, name } = app.world.bot;
  const words = online ? "online" : "offline";
  const state = find("bot-state");
  if (state.dataset.state !== words)
    fill(state, [h("span", { class: `dot ${words}` }), h("span", { class: "bot-words" }, `${name} `), words]);
  state.dataset.state = words;
  const button = find("restart");
  button.hidden = !(app.world.guide && app.world.guide.restarts);
  if (!button.firstChild) fill(button, [icon("restart"), h("span", {}, "Restart", h("span", { class: "wide-only" }, " the bot"))]);
  button.setAttribute("aria-label", "Restart the bot");
}

find("restart").addEventListener("click", async (event) => {
  const button = event.currentTarget;
  button.disabled = true;
  speak("The bot is restarted.");
  await attempt(restart);
  setTimeout(() => {
    button.disabled = false;
  }, 1500);
});

async function go(id) {
  if (!id || !place(id)) return;
  app.here = id;
  readHere();
  clearComposer();
  draw();
  remember();
  emit("opened");
  await openMessages(id);
  if (window.matchMedia("(min-width: 821px)").matches) focusComposer();
}

let becoming = 0; // counts the changes of person: of two at once the later one holds

async function become(who, at) {
  const mine = ++becoming;
  const world = await loadState(who);
  if (mine !== becoming) return;
  const wanted = at || app.here; // looked at now: somebody may have gone elsewhere during the request
  app.world = null;
  adopt(world);
  adoptUnread(world.unread);
  app.here = wanted && place(wanted) ? wanted : firstPlace();
  readHere();
  app.messages = new Map();
  clearComposer();
  draw();
  remember();
  follow(world.head);
  if (app.here) await openMessages(app.here);
  else emit("messages");
  drawWelcome();
  drawHint();
  drawTyping();
}

/** The sandbox was restarted: everything is loaded again, so that no button of the earlier run stays. */
async function recover() {
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  const { version } = app.world;
  await become(app.me).catch(() => become("Ada"));
  if (app.world.version !== version) return location.reload();
  notice(RECOVERED);
  setTimeout(() => find("offline").textContent === RECOVERED && notice(""), RECOVERED_SECONDS * 1000);
  return null;
}

function notice(words) {
  const line = find("offline");
  line.hidden = !words;
  line.textContent = words;
}

/** Opens the thread that the bot started for the last message. */
function enterThread() {
  const opened = [...awaited].find((id) => place(id));
  if (!opened) return false;
  awaited.delete(opened);
  go(opened);
  return true;
}

/** Follows a link to a channel or a message. */
async function jump({ channel, message }) {
  if (!place(channel)) return emit("problem", "You cannot see the place that this link leads to.");
  if (channel !== app.here) await go(channel);
  else emit("opened");
  if (message && app.here === channel && !(await showMessage(message)))
    emit("problem", "The message that this link leads to was deleted.");
  return null;
}

on("unread", drawTabTitle);
on("go", go);
on("jump", jump);
on("act-as", async (id, then) => {
  await attempt(() => become(id));
  speak(`Acting as ${self().name}, ${self().word}.`);
  emit("opened");
  then?.();
});
on("sent", (message) => {
  awaited.add(message.id);
  setTimeout(() => awaited.delete(message.id), 15000);
  enterThread(); // the bot may have been faster than the response to our request
});
on("stream:state", ({ state }) => {
  const was = app.world.bot.online;
  adopt(state);
  if (app.here && !place(app.here)) {
    go(firstPlace());
    emit("problem", "The place that was open here was deleted, or you can no longer see it.");
  }
  draw();
  if (was !== state.bot.online) speak(`${state.bot.name} is ${state.bot.online ? "online" : "offline"}.`);
  if (!enterThread()) emit("names");
});
on("stream:reset", recover);
on("connected", (up) => {
  if (!up) notice("The sandbox does not respond. Trying again…");
  else if (find("offline").textContent !== RECOVERED) notice(""); // that one stays for some seconds
});
on("locked", () =>
  notice("The sandbox was started anew. Open the page with the address that it printed in the terminal."),
);
window.addEventListener("hashchange", () => {
  const { as, at } = address();
  if (as && as !== self().name) become(as, at);
  else if (at && at !== app.here) go(at);
});

buildComposer();
const wanted = address();
try {
  await become(wanted.as || "Ada", wanted.at);
} catch {
  await become("Ada", wanted.at);
}
document.documentElement.dataset.ready = "true";
performance.mark("ready");
