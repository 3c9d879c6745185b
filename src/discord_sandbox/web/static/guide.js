// The guided first minute: a few things to type, and what to do next.

import { openDirect } from "./api.js";
import { sendText } from "./composer.js";
import { find, h, icon, refill, rendered } from "./dom.js";
import { attempt } from "./message.js";
import { app, emit, knowDirect, on, place, self } from "./state.js";

const OFF = "sandbox-guide-off";
let dismissed = sessionStorage.getItem(OFF) === "1";
let current = null; // the step that was started last
let begun = null; // the id of the message that started it
let waiting = null; // called when the bot is online

const steps = () => app.world.guide.steps;
const isDone = (step) => app.world.tour.done.includes(step.id); // at some time, perhaps in an earlier run

/** The run of the present step, as far as the server has seen it. An earlier run of the same step does not count. */
function presentRun() {
  const latest = current && app.world.tour.runs[current.id];
  return latest && latest.message === begun ? latest : null;
}

/** The channel where suggestions are sent: the first one of a server that has the bot. */
function home() {
  const guild = app.world.guilds.find((one) => one.has_bot && one.channels.length);
  return guild ? guild.channels[0].id : null;
}

export function drawWelcome() {
  const here = place(app.here);
  const welcome = find("welcome");
  if (!here) {
    refill(welcome, [h("h2", {}, "Nothing to see here"), h("p", {}, `${self().name} is in no server with a channel.`)]);
    return;
  }
  welcome.classList.toggle("in-thread", here.kind === "thread");
  const name = here.kind === "channel" ? `#${here.name}` : here.name;
  const empty = app.messages.size === 0;
  refill(welcome, [
    h(
      "div",
      { class: "welcome-mark", "aria-hidden": "true" },
      here.kind === "thread" ? icon("thread") : here.kind === "direct" ? "@" : "#",
    ),
    h("h2", {}, here.kind === "direct" ? name : here.kind === "thread" ? name : `Welcome to ${name}`),
    h("p", {}, about(here)),
    empty && here.kind === "channel" && here.guild.has_bot && steps().length > 0 && suggestions(),
  ]);
}

function about(here) {
  const { name: bot } = app.world.bot;
  if (here.kind === "thread") return `A thread in #${here.channel.name}. Mention @${bot} to continue in it.`;
  if (here.kind === "direct")
    return here.with === app.world.bot.id
      ? app.world.guide.direct || "Only the two of you can see this."
      : "Only the two of you can see this.";
  if (!here.guild.has_bot)
    return `${bot} is not in this server, and ${self().name} cannot see the server that it is in. Act as somebody else.`;
  return (app.messages.size === 0 && app.world.guide.channel) || `Mention @${bot} to talk to it.`;
}

function suggestions() {
  return h(
    "ol",
    { class: "suggestions" },
    steps().map((step, n) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", class: "suggestion", onclick: () => start(step) },
          h("span", { class: "suggestion-title" }, `${n + 1}. ${step.title}`, isDone(step) && icon("check")),
          h("span", { class: "suggestion-text" }, asSent(step)),
        ),
      ),
    ),
  );
}

/** The bot misses messages while it is away, as on Discord, so a suggestion waits until it is online. */
function whenOnline() {
  if (app.world.bot.online) return Promise.resolve();
  return new Promise((resolve) => {
    waiting = resolve;
  });
}

on("stream:state", ({ state }) => {
  if (!state.bot.online || !waiting) return;
  waiting();
  waiting = null;
});

const asSent = (step) => (step.where === "direct" ? step.text : `@${app.world.bot.name} ${step.text}`);

async function start(step) {
  current = step;
  begun = null;
  app.answers = step.answers || [];
  const online = whenOnline();
  drawHint();
  await online;
  if (current !== step) return;
  if (step.as && step.as !== self().name) await actAs(step.as);
  const channel = step.where === "direct" ? (await attempt(() => openDirect(app.world.bot.id)))?.id : home();
  if (!channel || current !== step) return;
  if (step.where === "direct") knowDirect(channel);
  await sendText(channel, asSent(step));
}

/** A step is also begun by somebody who types its text, or takes it from an example in the chat. */
on("sent", (message, typed) => {
  const step = current && asSent(current) === typed ? current : steps().find((one) => asSent(one) === typed);
  if (step) {
    current = step;
    begun = message.id;
    app.answers = step.answers || [];
  } else if (presentRun()?.done) {
    current = null; // what follows is no part of that step
  }
  drawHint();
});

function actAs(name) {
  const one = app.world.people.find((other) => other.name === name);
  return new Promise((resolve) => (one ? emit("act-as", one.id, resolve) : resolve()));
}

export function drawHint() {
  const hint = find("hint");
  const here = place(app.here);
  const empty = here && here.kind === "channel" && app.messages.size === 0;
  const elsewhere = here && here.kind === "direct" && current?.where !== "direct";
  hint.hidden = (dismissed || !steps().length || !home() || Boolean(empty) || !here || elsewhere) && !waiting;
  if (hint.hidden) return;
  const close = h(
    "button",
    {
      type: "button",
      class: "icon-button small",
      "aria-label": "Hide the suggestions",
      onclick: () => {
        dismissed = true;
        sessionStorage.setItem(OFF, "1");
        drawHint();
      },
    },
    icon("close"),
  );
  const run = presentRun();
  const next = run?.done ? steps().find((step) => !isDone(step)) : null;
  refill(hint, [
    current &&
      (waiting
        ? h("p", {}, `Sent as soon as ${app.world.bot.name} is online…`)
        : run?.done
          ? h("p", { class: "hint-done" }, icon("check"), `Done: ${current.title}${next ? "" : ". That was the last step."}`)
          : advice(current, run)),
    h(
      "div",
      { class: "chips-line" },
      h(
        "div",
        { class: "chips" },
        h("span", { class: "chips-label" }, next ? "Next:" : "Try:"),
        steps().map((step, n) =>
          h(
            "button",
            {
              type: "button",
              class: `chip ${isDone(step) ? "done" : ""} ${step === next ? "next" : ""}`,
              "aria-label": isDone(step) ? `${step.short}, was done. Do it again` : step.short,
              title: `Sends: ${asSent(step)}`,
              onclick: () => start(step),
            },
            isDone(step) ? icon("check") : `${n + 1}.`,
            ` ${step.short}`,
          ),
        ),
      ),
      close,
    ),
  ]);
  if (next) hint.querySelector(".chip.next")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** What to do next, with the people who can do it. */
function advice(step, run) {
  const others = (step.acts || []).filter((name) => name !== self().name);
  return h(
    "div",
    { class: "advice" },
    rendered(run ? run.then : step.then, { class: "hint-text" }),
    others.map((name) => h("button", { type: "button", class: "chip", onclick: () => actAs(name) }, `Act as ${name}`)),
  );
}

on("stream:tour", ({ tour }) => {
  app.world.tour = tour;
  drawWelcome();
  drawHint();
});
on("messages", () => {
  drawWelcome();
  drawHint();
});
