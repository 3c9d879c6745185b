// A slash command being filled in: one field per option, with the bot's own suggestions where it offers them.

import { command } from "./api.js";
import { fill, find, h, iconButton } from "./dom.js";
import { openModal } from "./modal.js";
import { app, person, place } from "./state.js";

const PAUSE = 200;
let form = null;
let count = 0;

export const commandIsOpen = () => form !== null;

export function closeCommand() {
  if (!form) return;
  form.remove();
  form = null;
  find("composer-line").hidden = false;
}

export function openCommand(chosen, text) {
  closeCommand();
  const readers = new Map();
  const problem = h("p", { class: "failed", role: "alert", hidden: true });
  const done = () => {
    closeCommand();
    text.focus();
  };
  const fields = chosen.options.map((option) => field(option, chosen, readers));
  form = h(
    "form",
    {
      class: "command-form",
      "aria-label": `Command ${chosen.line}`,
      onsubmit: run,
      onkeydown: (event) => event.key === "Escape" && done(),
    },
    h(
      "p",
      { class: "command-head" },
      h("strong", {}, `/${chosen.line}`),
      h("span", {}, chosen.note),
      iconButton("close", "Leave the command", done, "small"),
    ),
    fields.length > 0 && h("div", { class: "command-fields" }, fields),
    problem,
    h("button", { type: "submit", class: "button primary" }, "Run"),
  );
  const own = form;
  find("composer-line").hidden = true;
  find("composer-line").before(form);
  (form.querySelector("input, select") || form.querySelector(".button")).focus();

  async function run(event) {
    event.preventDefault();
    problem.hidden = true;
    try {
      const outcome = await command(app.here, chosen.line, values(readers));
      if (outcome.state === "failed") throw new Error(outcome.error);
      if (form === own) done();
      if (outcome.modal) openModal(outcome, text);
    } catch (wrong) {
      problem.textContent = wrong.message;
      problem.hidden = false;
    }
  }
}

function values(readers) {
  return Object.fromEntries(
    [...readers].map(([name, read]) => [name, read()]).filter(([, value]) => value !== "" && value !== undefined),
  );
}

function offered(option) {
  if (option.choices) return option.choices.map((one) => [one.value, one.name]);
  const here = place(app.here);
  const guild = here && here.guild;
  const users = (guild ? guild.members : []).map((one) => [one.id, `@${person(one.id).name}`]);
  const roles = Object.entries(app.world.roles).map(([id, name]) => [id, `@${name}`]);
  const channels = (guild ? guild.channels : []).map((one) => [one.id, `#${one.name}`]);
  return (
    {
      5: [
        ["true", "true"],
        ["false", "false"],
      ],
      6: users,
      7: channels,
      8: roles,
      9: [...users, ...roles],
    }[option.type] || null
  );
}

function field(option, chosen, readers) {
  const id = `option-${++count}`;
  const required = Boolean(option.required);
  const list = offered(option);
  let control;
  if (list) {
    control = h(
      "select",
      { id, required },
      h("option", { value: "" }, required ? "choose" : "(none)"),
      list.map(([value, name], n) => h("option", { value: String(n) }, name)),
    );
    readers.set(option.name, () =>
      control.value === ""
        ? undefined
        : option.type === 5
          ? list[Number(control.value)][0] === "true"
          : list[Number(control.value)][0],
    );
  } else {
    const numeric = option.type === 4 || option.type === 10;
    control = h("input", {
      id,
      required,
      type: numeric && !option.autocomplete ? "number" : "text",
      step: option.type === 10 ? "any" : null,
      autocomplete: "off",
      placeholder: option.description,
    });
    readers.set(option.name, () => control.value);
    if (option.autocomplete) suggest(control, option, chosen, readers);
  }
  return h(
    "div",
    { class: "command-field" },
    h(
      "label",
      { for: id, title: option.description },
      option.name,
      required && h("span", { class: "needed", "aria-hidden": "true" }, " *"),
    ),
    control,
  );
}

/** Asks the bot for suggestions while the person types, and sends the value behind the name. */
function suggest(control, option, chosen, readers) {
  const list = h("datalist", { id: `${control.id}-list` });
  const byName = new Map();
  let timer = null;
  control.setAttribute("list", list.id);
  control.after(list);
  readers.set(option.name, () => (byName.has(control.value) ? byName.get(control.value) : control.value));
  const ask = async () => {
    const typed = { ...values(readers), [option.name]: control.value };
    const outcome = await command(app.here, chosen.line, typed, option.name).catch(() => null);
    if (!outcome || !outcome.choices) return;
    byName.clear();
    for (const one of outcome.choices) byName.set(one.name, one.value);
    if (!list.isConnected) control.after(list);
    fill(
      list,
      outcome.choices.map((one) => h("option", { value: one.name })),
    );
  };
  control.addEventListener("focus", ask);
  control.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  });
}
