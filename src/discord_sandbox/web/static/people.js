// The right side: who is in this server, and the switch to act as somebody else.

import { avatar, find, h, refill } from "./dom.js";
import { app, emit, person, place } from "./state.js";

const panel = find("people");
// The word for a person -> a note about them; the guide may have others.
const ABOUT = {
  admin: "has Manage Server",
  approver: "has the Approvers role",
  member: "has no role",
  outsider: "is only in another server",
};

export function drawPeople() {
  const here = place(app.here);
  const guild = here && here.guild;
  const members = guild ? guild.members : [];
  const bots = members.filter((one) => person(one.id).bot && (one.online || one.id === app.world.bot.id));
  refill(panel, [
    h(
      "section",
      {},
      h("h2", {}, "Act as"),
      h(
        "ul",
        { role: "radiogroup", "aria-label": "Act as" },
        app.world.people.map((one) => h("li", { role: "none" }, actor(one))),
      ),
    ),
    bots.length > 0 && h("section", {}, h("h2", {}, "Apps"), h("ul", {}, bots.map(app_))),
  ]);
}

function actor(one) {
  const mine = one.id === app.me;
  const notes = app.world.guide?.people || {};
  return h(
    "button",
    {
      type: "button",
      class: `member ${mine ? "here" : ""}`,
      role: "radio",
      "aria-checked": String(mine),
      data: { person: one.id },
      onclick: () => emit("act-as", one.id),
    },
    avatar(one.id, one.name, false),
    h(
      "span",
      { class: "member-words" },
      h("span", { class: "member-name" }, `${one.name} `, h("span", { class: "word" }, one.word)),
      h("span", { class: "member-note" }, notes[one.name] || notes[one.word] || ABOUT[one.word] || "is a member"),
    ),
  );
}

function app_(member) {
  const { name } = person(member.id);
  const online = member.id === app.world.bot.id ? app.world.bot.online : member.online;
  return h(
    "li",
    { class: `member plain ${online ? "" : "away"}` },
    avatar(member.id, name, true, online ? "online" : ""),
    h(
      "span",
      { class: "member-words" },
      h("span", { class: "member-name" }, name, h("span", { class: "tag" }, "App")),
      h("span", { class: "member-note" }, online ? "online" : "offline"),
    ),
  );
}
