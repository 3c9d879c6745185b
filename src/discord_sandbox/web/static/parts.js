// Components: containers, sections, separators, text, files, media, buttons and selects, as elements.

import { press } from "./api.js";
import { fill, h, icon, rendered, speak } from "./dom.js";
import { keepHere } from "./links.js";
import { openModal } from "./modal.js";
import { decorate } from "./text.js";
import { app, person, place } from "./state.js";

const STYLES = { 1: "primary", 2: "secondary", 3: "success", 4: "danger", 5: "link", 6: "secondary" };

export function part(body, message) {
  switch (body.type) {
    case 1:
      return h(
        "div",
        { class: "row" },
        body.components.map((child) => part(child, message)),
      );
    case 2:
      return button(body, message);
    case 3:
    case 5:
    case 6:
    case 7:
    case 8:
      return select(body, message);
    case 9:
      return h(
        "div",
        { class: "section" },
        h(
          "div",
          { class: "section-text" },
          body.components.map((child) => part(child, message)),
        ),
        part(body.accessory, message),
      );
    case 10:
      return decorate(rendered(body.html));
    case 11:
      return picture(body, "thumbnail");
    case 12:
      return h(
        "div",
        { class: "gallery" },
        body.items.map((item) => picture(item, "gallery-item")),
      );
    case 13:
      return file(body.file);
    case 14:
      return h("hr", { class: `separator ${body.divider ? "" : "bare"} ${body.spacing === 2 ? "wide" : ""}` });
    case 17:
      return container(body, message);
    default:
      return h("p", { class: "unknown" }, `(a component of type ${body.type}, which this page does not show)`);
  }
}

function container(body, message) {
  const box = h(
    "div",
    { class: "box" },
    body.components.map((child) => part(child, message)),
  );
  if (body.accent_color !== null && body.accent_color !== undefined) {
    box.style.setProperty("--accent", `#${body.accent_color.toString(16).padStart(6, "0")}`);
    box.classList.add("accented");
  }
  return box;
}

function button(body, message) {
  const label = [body.emoji && body.emoji.name ? `${body.emoji.name} ` : "", body.label || ""].join("");
  const look = `button ${STYLES[body.style]}`;
  if (body.style === 5) {
    const safe = /^https?:\/\//i.test(body.url || "");
    const link = h(
      "a",
      { class: look, href: safe ? body.url : null, rel: "noopener noreferrer nofollow", target: "_blank" },
      label,
    );
    keepHere(link);
    return link;
  }
  return h(
    "button",
    {
      type: "button",
      class: look,
      disabled: Boolean(body.disabled),
      data: { key: body.custom_id || "" },
      onclick: (event) => act(message, body.custom_id, null, event.currentTarget),
    },
    label,
  );
}

/** Presses or chooses as the current person, and shows the outcome. */
export async function act(message, id, values, control) {
  const shell = control.closest(".message");
  const rest = [...shell.querySelectorAll("button[data-key], select[data-key]")].filter((one) => !one.disabled);
  control.classList.add("busy");
  for (const one of rest) one.setAttribute("aria-disabled", "true");
  shell.querySelector(".failed")?.remove();
  try {
    const outcome = await press(message.channel, message.id, id, values);
    if (outcome.state === "failed") failed(message, outcome.error);
    if (outcome.modal) openModal(outcome, control);
  } catch (problem) {
    failed(message, problem.message);
  } finally {
    control.classList.remove("busy");
    for (const one of rest) one.removeAttribute("aria-disabled");
  }
}

function failed(message, text) {
  const shell = document.querySelector(`.message[data-id="${message.id}"]`);
  if (!shell) return;
  shell.querySelector(".message-body").append(h("p", { class: "failed" }, text));
  speak(text);
}

/** The options of a select: its own ones, or people, roles and channels. */
export function choices(body) {
  if (body.type === 3 || body.options)
    return body.options.map((one) => ({
      value: one.value,
      label: one.label,
      note: one.description,
      chosen: one.default,
    }));
  const here = place(app.here);
  const guild = here && here.guild;
  const users = (guild ? guild.members : []).map((one) => ({ value: one.id, label: person(one.id).name }));
  const roles = Object.entries(app.world.roles)
    .filter(([, name]) => name !== "@everyone")
    .map(([value, label]) => ({ value, label: `@${label}` }));
  const channels = (guild ? guild.channels : []).map((one) => ({ value: one.id, label: `#${one.name}` }));
  return { 5: users, 6: roles, 7: [...users, ...roles], 8: channels }[body.type] || [];
}

function select(body, message) {
  const offered = choices(body);
  const label = body.placeholder || "Make a selection";
  if (body.max_values > 1) return several(body, message, offered, label);
  const control = h(
    "select",
    {
      class: "select",
      "aria-label": label,
      disabled: Boolean(body.disabled),
      data: { key: body.custom_id },
      onchange: (event) => act(message, body.custom_id, [event.currentTarget.value], event.currentTarget),
    },
    h("option", { value: "", disabled: true, selected: !offered.some((one) => one.chosen) }, label),
    offered.map((one) =>
      h(
        "option",
        { value: one.value, selected: Boolean(one.chosen) },
        one.note ? `${one.label} (${one.note})` : one.label,
      ),
    ),
  );
  return control;
}

function several(body, message, offered, label) {
  const boxes = offered.map((one) =>
    h(
      "label",
      { class: "choice" },
      h("input", { type: "checkbox", value: one.value, checked: Boolean(one.chosen) }),
      one.label,
    ),
  );
  const picked = () =>
    boxes
      .map((box) => box.firstChild)
      .filter((box) => box.checked)
      .map((box) => box.value);
  const send = h(
    "button",
    {
      type: "button",
      class: "button primary",
      data: { key: body.custom_id },
      disabled: Boolean(body.disabled),
      onclick: (event) => act(message, body.custom_id, picked(), event.currentTarget),
    },
    "Choose",
  );
  const allow = () => {
    send.disabled = picked().length < body.min_values || picked().length > body.max_values;
  };
  for (const box of boxes) box.addEventListener("change", allow);
  allow();
  return h(
    "details",
    { class: "several" },
    h("summary", {}, label),
    fill(h("div", { class: "several-body" }), [...boxes, send]),
  );
}

function picture(item, look) {
  const media = item.media;
  if (media.image) {
    const image = h("img", {
      class: look,
      src: media.url,
      alt: item.description || media.description || "",
      loading: "lazy",
    });
    return item.spoiler
      ? h("span", { class: "spoiler", onclick: (event) => event.currentTarget.classList.add("open") }, image)
      : image;
  }
  if (media.url) return file(media);
  // Nothing is fetched from elsewhere: the address is shown instead.
  return h("span", { class: "elsewhere" }, `picture at ${media.elsewhere}`);
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1048576).toFixed(1)} MB`;
}

export function file(found) {
  const name = found.name || "file";
  if (found.image) {
    return h(
      "a",
      { class: "image-link", href: found.url, target: "_blank", rel: "noopener" },
      h("img", { class: "image", src: found.url, alt: found.description || name, loading: "lazy" }),
    );
  }
  return h(
    "a",
    { class: "file", href: found.url, download: name, "aria-label": `Download ${name}, ${size(found.size)}` },
    icon("file"),
    h(
      "span",
      { class: "file-words" },
      h("span", { class: "file-name" }, name),
      h("span", { class: "file-size" }, size(found.size)),
    ),
    icon("down"),
  );
}
