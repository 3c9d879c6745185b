// The left side: servers, channels with their threads, direct messages, and who you are.

import { openDirect } from "./api.js";
import { avatar, fill, find, h, icon } from "./dom.js";
import { attempt } from "./message.js";
import { app, emit, knowDirect, on, person, self } from "./state.js";
import { pingsIn } from "./unread.js";

const nav = find("places");
const SHOWN = 12;
const unfolded = new Set();

export function drawPlaces() {
  const { guilds, direct, bot } = app.world;
  const focused = nav.contains(document.activeElement) ? document.activeElement.dataset.place : null;
  fill(nav, [
    h(
      "div",
      { class: "places-list" },
      guilds.map(server),
      h(
        "section",
        {},
        h("h2", { class: "server-name minor" }, "Direct messages"),
        h(
          "ul",
          {},
          direct.map((one) => entry(one.id, person(one.with).name, "at")),
          bot.id &&
            !direct.some((one) => one.with === bot.id) &&
            h(
              "li",
              {},
              h(
                "button",
                { type: "button", class: "place", onclick: toBot },
                mark("at"),
                h("span", { class: "place-name" }, bot.name),
              ),
            ),
        ),
      ),
    ),
    identity(),
  ]);
  if (focused) nav.querySelector(`[data-place="${focused}"]`)?.focus();
}

async function toBot() {
  emit("moving", true);
  const channel = await attempt(() => openDirect(app.world.bot.id));
  if (!channel) return emit("moving", false);
  knowDirect(channel.id);
  return emit("go", channel.id);
}

function server(guild) {
  return h(
    "section",
    {},
    h("h2", { class: "server-name" }, guild.name),
    h(
      "ul",
      {},
      guild.channels.map((channel) => entry(channel.id, channel.name, "hash", threads(channel))),
    ),
  );
}

function threads(channel) {
  const open = channel.threads.filter((one) => !one.archived || one.id === app.here);
  if (!open.length) return null;
  const all = unfolded.has(channel.id) || open.length <= SHOWN;
  const some = all ? open : open.filter((one, n) => n < SHOWN || one.id === app.here);
  return h(
    "ul",
    { class: "threads" },
    some.map((one) => entry(one.id, one.name, one.private ? "lock" : "thread")),
    !all &&
      h(
        "li",
        {},
        h(
          "button",
          {
            type: "button",
            class: "place more-threads",
            onclick: () => {
              unfolded.add(channel.id);
              drawPlaces();
            },
          },
          `${open.length - some.length} older threads`,
        ),
      ),
  );
}

function mark(kind) {
  if (kind === "hash" || kind === "at")
    return h("span", { class: "mark", "aria-hidden": "true" }, kind === "hash" ? "#" : "@");
  return h("span", { class: "mark" }, icon(kind));
}

function entry(id, name, kind, inner = null) {
  const news = pingsIn(id);
  const here = id === app.here;
  const classes = ["place", here && "here", news !== undefined && !here && "unread"].filter(Boolean).join(" ");
  return h(
    "li",
    {},
    h(
      "button",
      {
        type: "button",
        class: classes,
        "aria-current": here ? "page" : null,
        data: { place: id },
        onclick: () => emit("go", id),
      },
      mark(kind),
      h("span", { class: "place-name" }, name),
      news > 0 && !here && h("span", { class: "badge", "aria-label": news === 1 ? "1 mention" : `${news} mentions` }, String(news)),
    ),
    inner,
  );
}

function identity() {
  const me = self();
  const choose = h(
    "select",
    {
      class: "acting",
      id: "acting",
      "aria-label": "Acting as",
      onchange: (event) => emit("act-as", event.currentTarget.value),
    },
    app.world.people.map((one) =>
      h("option", { value: one.id, selected: one.id === app.me }, `${one.name}, ${one.word}`),
    ),
  );
  return h(
    "div",
    { class: "identity" },
    avatar(me.id, me.name, false),
    h("div", { class: "identity-words" }, h("label", { for: "acting" }, "Acting as"), choose),
  );
}

on("unread", drawPlaces);
