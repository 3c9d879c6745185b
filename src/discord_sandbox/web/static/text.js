// Finishes the rendered text: names for mentions, text for times, spoilers that open.

import { tellAll } from "./clock.js";
import { keepHere } from "./links.js";
import { app, emit, place } from "./state.js";

const NAMES = {
  user: (id) => `@${app.world.users[id] ? app.world.users[id].name : "unknown-user"}`,
  role: (id) => `@${app.world.roles[id] || "deleted-role"}`,
  channel: (id) => `#${place(id) ? place(id).name : "no-access"}`,
};

export function decorate(root) {
  for (const chip of root.querySelectorAll(".mention[data-kind]")) {
    const { kind, id } = chip.dataset;
    if (NAMES[kind]) chip.textContent = NAMES[kind](id);
    if (kind === "user" && id === app.me) chip.classList.add("mine");
    if (kind === "channel" && place(id)) asButton(chip, () => emit("go", id));
  }
  for (const link of root.querySelectorAll("a[href]")) keepHere(link);
  for (const hidden of root.querySelectorAll(".spoiler")) {
    hidden.setAttribute("aria-label", "Spoiler");
    asButton(hidden, () => {
      hidden.classList.add("open");
      hidden.removeAttribute("aria-label");
    });
  }
  tellAll(root);
  return root;
}

/** Makes each list item that is nothing but code an example: a click puts it into the message box. */
export function offerExamples(root) {
  for (const code of root.querySelectorAll("li > code:only-child")) {
    const item = code.parentElement;
    if (item.textContent.trim() !== code.textContent.trim()) continue;
    code.classList.add("example");
    code.title = "Put this into the message box";
    asButton(code, () => emit("propose", code.textContent));
  }
  return root;
}

function asButton(element, act) {
  element.tabIndex = 0;
  element.setAttribute("role", "button");
  element.addEventListener("click", act);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
}
