// Modals: a form that the bot asked for, in the browser's own dialog, which traps focus and closes on Escape.

import { submit } from "./api.js";
import { h, iconButton, rendered } from "./dom.js";
import { base64 } from "./files.js";
import { choices } from "./parts.js";
import { app } from "./state.js";
import { decorate } from "./text.js";

let count = 0;

export function openModal(outcome, opener) {
  const { modal } = outcome;
  const readers = new Map();
  const problem = h("p", { class: "failed", role: "alert", hidden: true });
  const send = h("button", { type: "submit", class: "button primary" }, "Submit");
  const cancel = h("button", { type: "button", class: "button secondary", onclick: () => dialog.close() }, "Cancel");
  const title = h("h2", { id: `modal-${++count}` }, modal.title);
  const form = h(
    "form",
    { class: "modal-form", onsubmit: submitForm },
    h(
      "header",
      {},
      title,
      iconButton("close", "Close", () => dialog.close()),
    ),
    h(
      "div",
      { class: "modal-fields" },
      modal.components.map((body) => field(body, readers)),
    ),
    problem,
    h("footer", {}, cancel, send),
  );
  const dialog = h("dialog", { class: "modal", "aria-labelledby": title.id }, form);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (opener && opener.isConnected) opener.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  (form.querySelector(".modal-fields input, .modal-fields textarea, .modal-fields select") || send).focus();

  async function submitForm(event) {
    event.preventDefault();
    send.disabled = true;
    problem.hidden = true;
    try {
      const values = {};
      for (const [id, read] of readers) values[id] = await read();
      const done = await submit(outcome.id, values);
      if (done.state !== "failed") return dialog.close();
      problem.textContent = done.error;
    } catch (wrong) {
      problem.textContent = wrong.message;
    }
    problem.hidden = false;
    send.disabled = false;
    return null;
  }
}

const GROUPS = [21, 22]; // several controls under one label
const CHECKBOX = 23;

function field(body, readers) {
  if (body.type === 10) return decorate(rendered(body.html));
  const inner = body.type === 18 ? body.component : body.components[0];
  const label = body.type === 18 ? body.label : inner.label;
  const id = `field-${++count}`;
  const note = body.description ? h("p", { class: "field-note", id: `${id}-note` }, body.description) : null;
  const control = input(inner, id, readers);
  if (note) control.setAttribute("aria-describedby", note.id);
  const needed = inner.required !== false && inner.type !== CHECKBOX;
  const words = [label, needed && h("span", { class: "needed", "aria-hidden": "true" }, " *")];
  if (inner.type === CHECKBOX) return h("div", { class: "field" }, h("label", { class: "choice" }, control, words), note);
  if (!GROUPS.includes(inner.type)) return h("div", { class: "field" }, h("label", { for: id }, words), note, control);
  control.setAttribute("aria-labelledby", `${id}-label`);
  return h("div", { class: "field" }, h("p", { class: "field-label", id: `${id}-label` }, words), note, control);
}

/** An empty text box with the answers that the guide suggests for the present step. */
function withAnswers(box) {
  const offered = app.answers;
  if (!offered.length) return box;
  const take = (words) => () => {
    box.value = words;
    box.focus();
  };
  return h(
    "div",
    { class: "with-answers" },
    box,
    h("span", { class: "answers-label" }, "Suggested by the tour:"),
    offered.map((words) => h("button", { type: "button", class: "chip", onclick: take(words) }, words)),
  );
}

function input(body, id, readers) {
  const name = body.custom_id;
  const required = body.required !== false;
  switch (body.type) {
    case 4: {
      const shared = {
        id,
        required,
        minlength: String(body.min_length || 0),
        maxlength: String(body.max_length || 4000),
        placeholder: body.placeholder || null,
      };
      const box = body.style === 2 ? h("textarea", { ...shared, rows: "4" }) : h("input", { ...shared, type: "text" });
      box.value = body.value || "";
      readers.set(name, () => box.value);
      return body.value ? box : withAnswers(box);
    }
    case 3:
    case 5:
    case 6:
    case 7:
    case 8: {
      const many = (body.max_values || 1) > 1;
      const box = h(
        "select",
        { id, required, multiple: many, class: "select" },
        !many && h("option", { value: "" }, body.placeholder || "Make a selection"),
        choices(body).map((one) =>
          h("option", { value: one.value, selected: Boolean(one.chosen) }, one.note ? `${one.label} (${one.note})` : one.label),
        ),
      );
      readers.set(name, () => [...box.selectedOptions].map((one) => one.value).filter(Boolean));
      return box;
    }
    case 21:
    case 22: {
      const kind = body.type === 21 ? "radio" : "checkbox";
      const boxes = choices(body).map((one) =>
        h(
          "label",
          { class: "choice" },
          h("input", {
            type: kind,
            name: id,
            value: one.value,
            checked: Boolean(one.chosen),
            required: required && kind === "radio",
          }),
          h("span", { class: "choice-words" }, one.label, one.note && h("span", { class: "choice-note" }, one.note)),
        ),
      );
      const picked = () =>
        boxes
          .map((box) => box.firstChild)
          .filter((box) => box.checked)
          .map((box) => box.value);
      readers.set(name, picked);
      return h("div", { id, role: kind === "radio" ? "radiogroup" : "group", class: "choices" }, boxes);
    }
    case 19: {
      const box = h("input", { id, type: "file", multiple: (body.max_values || 1) > 1, required });
      readers.set(name, () =>
        Promise.all([...box.files].map(async (file) => ({ filename: file.name, data: await base64(file) }))),
      );
      return box;
    }
    case CHECKBOX: {
      const box = h("input", { id, type: "checkbox", checked: Boolean(body.default) });
      readers.set(name, () => box.checked);
      return box;
    }
    default:
      return h("p", { class: "unknown", id }, "(this page cannot fill in this field)");
  }
}
