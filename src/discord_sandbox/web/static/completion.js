// Suggestions above the message box: people and roles after @, channels after #, commands after /.

import { loadCommands } from "./api.js";
import { avatar, fill, h } from "./dom.js";
import { openCommand } from "./slash.js";
import { app, person, place } from "./state.js";

const MOST = 8; // names
const SHOWN = 3; // options of a command
const WORD = /(^|\s)([@#])([\w-]*)$/;

/** A command with its subcommands as lines that can be typed. */
export function flatten(command) {
  const inner = (command.options || []).filter((one) => one.type === 1 || one.type === 2);
  if (!inner.length) return [{ line: command.name, note: command.description, options: command.options || [] }];
  return inner.flatMap((one) => flatten(one).map((deep) => ({ ...deep, line: `${command.name} ${deep.line}` })));
}

export class Completion {
  constructor(text) {
    this.text = text;
    this.items = [];
    this.chosen = 0;
    this.turn = 0;
    this.list = h("ul", {
      class: "completion",
      id: "completion",
      role: "listbox",
      "aria-label": "Suggestions",
      hidden: true,
    });
    text.setAttribute("role", "combobox");
    text.setAttribute("aria-autocomplete", "list");
    text.setAttribute("aria-controls", "completion");
    text.setAttribute("aria-expanded", "false");
    text.addEventListener("blur", () => setTimeout(() => this.leave(), 150));
  }

  /** Somebody who is back in the box by now starts again. */
  leave() {
    if (document.activeElement !== this.text) this.show([]);
  }

  update() {
    const loading = this.load().finally(() => {
      if (this.loading === loading) this.loading = null;
    });
    this.loading = loading;
    return loading;
  }

  async load() {
    const turn = ++this.turn;
    const typed = this.text.value.slice(0, this.text.selectionStart);
    if (typed.startsWith("/") && !typed.includes("\n")) {
      const commands = await loadCommands(app.here).catch(() => []);
      if (turn === this.turn && document.activeElement === this.text) this.show(this.commands(commands, typed.slice(1).toLowerCase()));
      return;
    }
    const found = WORD.exec(typed);
    this.show(found ? this.names(found[2], found[3].toLowerCase()) : []);
  }

  /** Every command that is offered here: those that begin with the typed words first. */
  commands(offered, typed) {
    const wanted = typed.trim();
    const lines = offered.filter((one) => (one.type || 1) === 1).flatMap(flatten);
    const begins = lines.filter((one) => one.line.startsWith(wanted));
    const contains = lines.filter((one) => !one.line.startsWith(wanted) && one.line.includes(wanted));
    return [...begins, ...contains].map((one) => ({
      label: `/${one.line}`,
      options: one.options.map((option) => (option.required ? option.name : `${option.name}?`)),
      note: one.note,
      pick: () => {
        this.text.value = "";
        openCommand(one, this.text);
      },
    }));
  }

  names(sign, typed) {
    const here = place(app.here);
    const guild = here && here.guild;
    if (!guild) return [];
    const all =
      sign === "#"
        ? guild.channels.map((one) => ({ name: one.name, note: "channel" }))
        : [
            ...guild.members.map((one) => ({
              name: person(one.id).name,
              id: one.id,
              bot: person(one.id).bot,
              note: person(one.id).bot ? "app" : "member",
            })),
            ...Object.entries(app.world.roles)
              .filter(([, name]) => name !== "@everyone" && !guild.members.some((one) => person(one.id).name === name))
              .map(([, name]) => ({ name, note: "role" })),
          ];
    all.sort((a, b) => Number(b.id === app.world.bot.id) - Number(a.id === app.world.bot.id));
    return all
      .filter((one) => one.name.toLowerCase().startsWith(typed))
      .slice(0, MOST)
      .map((one) => ({
        label: `${sign}${one.name}`,
        note: one.note,
        face: one.id && avatar(one.id, one.name, one.bot, "tiny"),
        pick: () => this.insert(`${sign}${one.name} `),
      }));
  }

  insert(word) {
    const at = this.text.selectionStart;
    const before = this.text.value.slice(0, at).replace(/[@#][\w-]*$/, word);
    this.text.value = before + this.text.value.slice(at);
    this.text.setSelectionRange(before.length, before.length);
  }

  show(items) {
    this.items = items;
    this.chosen = 0;
    this.draw();
  }

  draw() {
    const open = this.items.length > 0;
    this.list.hidden = !open;
    this.text.setAttribute("aria-expanded", String(open));
    fill(
      this.list,
      this.items.map((item, n) =>
        h(
          "li",
          {
            role: "option",
            id: `completion-${n}`,
            class: n === this.chosen ? "chosen" : "",
            "aria-selected": String(n === this.chosen),
            onmousedown: (event) => {
              event.preventDefault();
              this.pick(n);
            },
          },
          item.face,
          h("span", { class: "completion-label" }, item.label),
          item.options?.slice(0, SHOWN).map((name) => h("span", { class: "completion-option" }, name)),
          item.options?.length > SHOWN && h("span", { class: "completion-more" }, `+${item.options.length - SHOWN}`),
          h("span", { class: "note" }, item.note),
        ),
      ),
    );
    if (open) {
      this.text.setAttribute("aria-activedescendant", `completion-${this.chosen}`);
      this.list.children[this.chosen].scrollIntoView({ block: "nearest" });
    }
    if (!open) this.text.removeAttribute("aria-activedescendant");
  }

  pick(n) {
    const item = this.items[n];
    this.show([]);
    item.pick();
    this.text.dispatchEvent(new Event("input"));
  }

  /** Whether the key was for the list. */
  key(event) {
    const takes = event.key === "Enter" || event.key === "Tab";
    if (takes && this.loading && this.text.value.startsWith("/")) {
      // The list is still that of an earlier text: wait for the one that belongs to this text.
      this.loading.then(() => this.items.length && this.pick(this.chosen));
      event.preventDefault();
      return true;
    }
    if (!this.items.length) return false;
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves) {
      this.chosen = (this.chosen + moves[event.key] + this.items.length) % this.items.length;
      this.draw();
    } else if (takes) {
      this.pick(this.chosen);
    } else if (event.key === "Escape") {
      this.show([]);
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }
}
