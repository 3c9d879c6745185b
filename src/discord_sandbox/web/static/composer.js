// The message box: text, attachments, a reply, completion, and slash commands.

import { say, typing } from "./api.js";
import { Completion } from "./completion.js";
import { fill, find, h, icon, iconButton, speak } from "./dom.js";
import { base64 } from "./files.js";
import { size } from "./parts.js";
import { closeCommand, commandIsOpen } from "./slash.js";
import { app, emit, now, on, place } from "./state.js";

const LARGEST = 25 * 1024 * 1024;
const LONGEST = 2000; // characters of a message
const NEARLY = 200; // left when the counter appears
const text = h("textarea", { id: "text", rows: "1", autocomplete: "off", spellcheck: "true" });
const counter = h("span", { class: "counter", role: "status", hidden: true });
const picker = h("input", {
  type: "file",
  multiple: true,
  hidden: true,
  id: "picker",
  "aria-label": "Files to attach",
});
const above = h("div", { class: "above-text" });
const problem = h("p", { class: "problem", role: "alert", hidden: true });
const attach = iconButton("attach", "Attach files", () => picker.click());
const sendButton = iconButton("send", "Send", () => send());
const line = h("div", { class: "composer-line", id: "composer-line" }, attach, text, counter, sendButton);
const completion = new Completion(text);
let files = [];
let repliedTo = null;
let typedAt = 0;
let moving = false; // whether another place is about to open: what is typed now would be lost, or go to the old one

export function buildComposer() {
  fill(find("composer"), [problem, above, completion.list, line, picker]);
}

export function drawComposer() {
  const here = place(app.here);
  const open = Boolean(here && here.writable) && !moving;
  text.disabled = !open;
  attach.disabled = !open;
  const shut = moving ? "One moment…" : here ? "You may not write here" : "There is nothing here to write to";
  text.placeholder = open ? invitation(here) : shut;
  text.setAttribute("aria-label", text.placeholder);
}

function invitation(here) {
  const { bot } = app.world;
  const where = { direct: `@${here.name}`, thread: "this thread", channel: `#${here.name}` }[here.kind];
  const wide = window.matchMedia("(min-width: 821px)").matches;
  if (!wide || here.kind === "direct" || !here.guild.has_bot) return `Message ${where}`;
  const hint = bot.online ? `Mention @${bot.name} to talk to it` : `${bot.name} is offline and replies when it is back`;
  return `Message ${where}. ${hint}`;
}

export function clearComposer() {
  moving = false;
  text.value = "";
  files = [];
  repliedTo = null;
  closeCommand();
  drawAbove();
  fail("");
  grow();
}

export const focusComposer = () => text.focus({ preventScroll: true });

/** The typed text, with names turned into mentions. */
function translate(typed) {
  const here = place(app.here);
  const names = [];
  const users = here && here.guild ? here.guild.members.map((one) => one.id) : here ? [here.with, app.me] : [];
  for (const id of users) if (app.world.users[id]) names.push([`@${app.world.users[id].name}`, `<@${id}>`]);
  if (here && here.guild) {
    for (const [id, name] of Object.entries(app.world.roles))
      if (name !== "@everyone") names.push([`@${name}`, `<@&${id}>`]);
    for (const channel of here.guild.channels) names.push([`#${channel.name}`, `<#${channel.id}>`]);
  }
  names.sort((a, b) => b[0].length - a[0].length);
  return names.reduce((done, [name, code]) => done.replace(new RegExp(`${escaped(name)}(?![\\w-])`, "g"), code), typed);
}

const escaped = (plain) => plain.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** How many characters are left. Discord counts the message as it is sent, with ids in place of names. */
const left = () => LONGEST - [...translate(text.value.trim())].length;

function count() {
  const remaining = left();
  counter.hidden = remaining > NEARLY;
  counter.classList.toggle("over", remaining < 0);
  counter.textContent = String(remaining);
  counter.setAttribute("aria-label", remaining < 0 ? `${-remaining} characters too many` : `${remaining} characters left`);
}

async function send() {
  const content = translate(text.value.trim());
  if (commandIsOpen() || text.disabled || (!content && !files.length)) return null;
  if (left() < 0) {
    fail(`Your message is too long. Messages have a character limit of ${LONGEST}, and this one has ${LONGEST - left()}.`);
    return null;
  }
  const body = { content, files };
  if (repliedTo) body.message_reference = { message_id: repliedTo.id, channel_id: repliedTo.channel };
  const kept = { value: text.value, files, repliedTo, here: app.here };
  clearComposer();
  try {
    const sent = await say(app.here, body);
    emit("sent", sent, kept.value.trim());
    return sent;
  } catch (wrong) {
    // Somebody who has gone elsewhere or typed on keeps what is in the box now.
    if (app.here === kept.here && !text.value && !files.length) {
      [text.value, files, repliedTo] = [kept.value, kept.files, kept.repliedTo];
      drawAbove();
      grow();
    }
    fail(wrong.message);
    return null;
  }
}

/** Puts a text into the box for the person, with the mention that the bot needs here. */
export function propose(typed) {
  const here = place(app.here);
  if (!here || text.disabled) return;
  closeCommand();
  text.value = here.kind === "direct" ? typed : `@${app.world.bot.name} ${typed}`;
  grow();
  text.focus();
  text.setSelectionRange(text.value.length, text.value.length);
}

/** Sends a text for the person, as the suggestions do. */
export async function sendText(channel, typed) {
  if (app.here !== channel) emit("go", channel);
  text.value = typed;
  grow();
  return send();
}

function fail(words) {
  problem.textContent = words;
  problem.hidden = !words;
}

function grow() {
  count();
  text.style.height = "auto";
  // Hidden behind a command it has no height to measure.
  if (text.scrollHeight) text.style.height = `${Math.min(text.scrollHeight, 240)}px`;
}

text.addEventListener("input", () => {
  grow();
  completion.update();
  if (text.value && now() - typedAt > 8000 && !text.value.startsWith("/")) {
    typedAt = now();
    typing(app.here).catch(() => {});
  }
});
text.addEventListener("keydown", (event) => {
  if (completion.key(event)) return;
  if (event.key === "Escape" && repliedTo) {
    repliedTo = null;
    drawAbove();
  }
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});
text.addEventListener("paste", (event) => take(event.clipboardData.files));
picker.addEventListener("change", () => {
  take(picker.files);
  picker.value = "";
});
find("conversation").addEventListener("dragover", (event) => event.preventDefault());
find("conversation").addEventListener("drop", (event) => {
  event.preventDefault();
  take(event.dataTransfer.files);
});

async function take(found) {
  for (const file of found) {
    if (file.size > LARGEST) {
      fail(`${file.name} is larger than 25 MB.`);
      continue;
    }
    files.push({ filename: file.name, data: await base64(file), size: file.size });
    speak(`${file.name} attached`);
  }
  drawAbove();
}

function drawAbove() {
  const drop = (label, act) => iconButton("close", label, act, "small");
  fill(above, [
    repliedTo &&
      h(
        "div",
        { class: "replying" },
        `Replying to ${repliedTo.author.name}`,
        drop("Stop replying", () => {
          repliedTo = null;
          drawAbove();
        }),
      ),
    files.length > 0 &&
      h(
        "ul",
        { class: "waiting-files" },
        files.map((file, n) =>
          h(
            "li",
            {},
            icon("file"),
            `${file.filename}, ${size(file.size)}`,
            drop(`Remove ${file.filename}`, () => {
              files.splice(n, 1);
              drawAbove();
            }),
          ),
        ),
      ),
  ]);
}

on("reply", (message) => {
  repliedTo = message;
  drawAbove();
  focusComposer();
});
on("problem", fail);
on("propose", propose);
on("moving", (begun) => {
  moving = begun;
  drawComposer();
});
