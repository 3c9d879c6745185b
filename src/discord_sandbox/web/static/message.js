// One message as an element: who, when, what, and the little toolbar on it.

import { edit, react, remove } from "./api.js";
import { stamp } from "./clock.js";
import { avatar, h, icon, iconButton, rendered, speak } from "./dom.js";
import { file, part } from "./parts.js";
import { app, emit } from "./state.js";
import { decorate, offerExamples } from "./text.js";

const REACTIONS = ["👍", "✅", "❌", "👀", "🎉"];
const MINUTES = 7 * 60 * 1000;

/** Whether a message hangs under the one before it, without a head of its own. */
export function continues(message, before) {
  return (
    Boolean(before) &&
    before.author.id === message.author.id &&
    before.author.name === message.author.name &&
    !message.replies_to &&
    !message.command &&
    !message.private &&
    !before.private &&
    ![6, 18].includes(message.type) &&
    ![6, 18].includes(before.type) &&
    new Date(message.at) - new Date(before.at) < MINUTES
  );
}

export function messageElement(message, before) {
  const light = continues(message, before);
  const classes = [
    "message",
    light && "continued",
    message.private && "private",
    message.pings && "pings",
    message.author.bot && "by-bot",
  ];
  const shell = h("li", { class: classes.filter(Boolean).join(" "), data: { id: message.id }, tabindex: "-1" });
  if (message.type === 18 || message.type === 6) {
    shell.classList.add("note");
    shell.append(
      icon("thread"),
      h(
        "p",
        {},
        h("strong", {}, message.author.name),
        message.type === 18 ? " started a thread." : " pinned a message.",
      ),
    );
    return shell;
  }
  shell.append(
    light
      ? h("time", { class: "gutter", datetime: message.at }, stamp(message.at))
      : avatar(message.author.id, message.author.name, message.author.bot),
    h(
      "div",
      { class: "message-body" },
      message.replies_to &&
        h(
          "p",
          { class: "replies-to" },
          icon("reply"),
          h(
            "button",
            {
              type: "button",
              class: "as-link",
              "aria-label": `Show the message of ${message.replies_to.author} that this replies to`,
              onclick: () => emit("jump", { channel: message.channel, message: message.replies_to.id }),
            },
            h("strong", {}, message.replies_to.author),
          ),
          decorate(rendered(message.replies_to.html, { class: "one-line" })),
        ),
      message.command &&
        h("p", { class: "replies-to" }, icon("reply"), h("strong", {}, message.command.user), " used a command"),
      !light && head(message),
      content(message),
      message.embeds.map(embed),
      message.parts.map((body) => part(body, message)),
      message.files.length > 0 && h("div", { class: "files" }, message.files.map(file)),
      message.reactions.length > 0 && reactions(message),
      message.thread && thread(message.thread),
      message.private && privately(message),
    ),
  );
  if (!message.private) equip(shell, message);
  return shell;
}

/** The toolbar comes when somebody points at the message or moves the focus to it: most are never touched. */
function equip(shell, message) {
  const add = () => shell.querySelector(".toolbar") || shell.append(toolbar(message));
  shell.addEventListener("pointerenter", add, { once: true });
  shell.addEventListener("focusin", add, { once: true });
}

function head(message) {
  return h(
    "p",
    { class: "message-head" },
    h("span", { class: "author" }, message.author.name),
    message.author.bot && h("span", { class: "tag" }, "App"),
    h("time", { class: "when", datetime: message.at }, stamp(message.at)),
  );
}

function content(message) {
  if (message.loading)
    return h(
      "p",
      { class: "thinking" },
      `${message.author.name} is thinking`,
      h("span", { class: "dots", "aria-hidden": "true" }),
    );
  if (!message.html) return null;
  const text = decorate(rendered(message.html));
  if (message.author.id === app.world.bot.id) offerExamples(text);
  if (message.edited)
    (text.lastElementChild || text).append(h("span", { class: "edited", title: message.edited }, " (edited)"));
  return text;
}

function embed(body) {
  const box = h(
    "div",
    { class: "box accented embed" },
    body.title && h("p", { class: "embed-title" }, body.title),
    body.html && decorate(rendered(body.html)),
    body.fields.map((one) => h("div", {}, h("p", { class: "embed-title" }, one.name), decorate(rendered(one.html)))),
    body.footer && h("small", {}, body.footer),
  );
  if (body.color) box.style.setProperty("--accent", `#${body.color.toString(16).padStart(6, "0")}`);
  return box;
}

function thread(found) {
  const count = found.count === 1 ? "1 message" : `${found.count} messages`;
  return h(
    "button",
    { type: "button", class: "thread-link", onclick: () => emit("go", found.id) },
    icon("thread"),
    h("strong", {}, found.name),
    h("span", {}, `${count} ›`),
  );
}

function privately(message) {
  return h(
    "p",
    { class: "only-you" },
    icon("eye"),
    "Only you can see this · ",
    h(
      "button",
      { type: "button", class: "as-link", onclick: () => attempt(() => remove(message.channel, message.id)) },
      "Dismiss message",
    ),
  );
}

function reactions(message) {
  return h(
    "div",
    { class: "reactions" },
    message.reactions.map((one) =>
      h(
        "button",
        {
          type: "button",
          class: `reaction ${one.me ? "mine" : ""}`,
          "aria-pressed": String(one.me),
          "aria-label": `${one.emoji}, ${one.count}`,
          onclick: () => attempt(() => react(message.channel, message.id, one.emoji, one.me)),
        },
        one.emoji,
        h("span", {}, String(one.count)),
      ),
    ),
  );
}

function toolbar(message) {
  const own = message.author.id === app.me && message.type !== 21;
  const tool = (name, label, act) => iconButton(name, label, act, "small");
  const picker = h(
    "details",
    { class: "picker" },
    h("summary", { class: "icon-button small", "aria-label": "React", title: "React" }, icon("smile")),
    h(
      "div",
      { class: "picker-body" },
      REACTIONS.map((emoji) =>
        h(
          "button",
          {
            type: "button",
            class: "icon-button small",
            "aria-label": `React with ${emoji}`,
            onclick: () => {
              picker.open = false;
              attempt(() => react(message.channel, message.id, emoji, false));
            },
          },
          emoji,
        ),
      ),
    ),
  );
  return h(
    "div",
    { class: "toolbar", role: "group", "aria-label": "Message actions" },
    picker,
    tool("reply", "Reply", () => emit("reply", message)),
    own && message.source !== null && tool("edit", "Edit", () => startEdit(message)),
    own && tool("trash", "Delete", () => attempt(() => remove(message.channel, message.id))),
  );
}

function startEdit(message) {
  const shell = document.querySelector(`.message[data-id="${message.id}"]`);
  const text = shell.querySelector(".message-body > .text");
  if (!text) return;
  const box = h("textarea", { class: "edit-box", "aria-label": "Edit message", rows: "2" });
  box.value = message.source;
  const stop = () => box.replaceWith(text);
  box.addEventListener("keydown", async (event) => {
    if (event.key === "Escape") stop();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    stop();
    if (box.value.trim() && box.value !== message.source)
      await attempt(() => edit(message.channel, message.id, box.value));
  });
  text.replaceWith(box);
  box.focus();
}

export async function attempt(work) {
  try {
    return await work();
  } catch (problem) {
    emit("problem", problem.message);
    speak(problem.message);
    return null;
  }
}
