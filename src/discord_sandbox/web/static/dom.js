// Builds elements. Text is always text; only `rendered` takes HTML, and only HTML that the server made from markdown.

const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("page", { createHTML: (text) => text })
  : { createHTML: (text) => text };

export const find = (id) => document.getElementById(id);

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  fill(element, children);
  return element;
}

export function fill(element, children) {
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** Like `fill`, but leaves equal content as it is: a button that is replaced while it is pressed gets no click. */
export function refill(element, children) {
  const fresh = fill(element.cloneNode(false), children);
  if (!fresh.isEqualNode(element)) element.replaceChildren(...fresh.childNodes);
  return element;
}

/** HTML that the server rendered: whitelisted there, and the only HTML that ever gets in here. */
export function rendered(html, props = {}) {
  const element = h("div", { ...props, class: `text ${props.class || ""}`.trim() });
  element.innerHTML = policy.createHTML(html);
  return element;
}

const ICONS = {
  menu: "M4 6h16M4 12h16M4 18h16",
  people:
    "M9 11a3.2 3.2 0 1 0 0-6.400 3.200 3.200 0 0 0 0 6.400zM3 19c0-3.300 2.700-5.500 6-5.500s6 2.200 6 5.500M16 5a3 3 0 0 1 0 6M17 13.800c2.400.500 4 2.400 4 5.200",
  inspect: "M8 6l-5 6 5 6M16 6l5 6-5 6M13.500 4l-3 16",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.400 1.400M17.600 17.600L19 19M5 19l1.400-1.400M17.600 6.400L19 5",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500z",
  auto: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18M12 7h5M12 12h8M12 17h5",
  restart: "M20 12a8 8 0 1 1-2.600-5.900M20 3v4.500h-4.500",
  close: "M6 6l12 12M18 6L6 18",
  attach: "M12 5v14M5 12h14",
  send: "M4 12l16-8-6 16-3-7-7-1z",
  reply: "M10 6L4 12l6 6M4 12h10c4 0 6 2 6 6",
  smile: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM8.500 14.500c1.800 2.400 5.200 2.400 7 0M9 9.500h.01M15 9.500h.01",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  edit: "M4 20l1-4L16 5l3 3L8 19l-4 1z",
  file: "M6 3h8l5 5v13H6zM14 3v5h5",
  down: "M12 4v12M6 11l6 6 6-6M5 21h14",
  thread: "M5 4v9a4 4 0 0 0 4 4h10M15 13l4 4-4 4",
  lock: "M6 11h12v9H6zM8.500 11V8a3.500 3.500 0 0 1 7 0v3",
  eye: "M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12zM12 9.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5z",
  check: "M5 12.500l4.500 4.500L19 7",
};

export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

export function iconButton(name, label, act, extra = "") {
  const props = {
    type: "button",
    class: `icon-button ${extra}`.trim(),
    "aria-label": label,
    title: label,
    onclick: act,
  };
  return h("button", props, icon(name));
}

export const marks = new Map(); // user id -> the icon shown instead of a letter

/** A round picture: the first letter on a colour of its own, or the user's mark. */
export function avatar(id, name, bot, extra = "") {
  const tint = Number(BigInt(id || 0) % 6n);
  const face = h("span", { class: `avatar tint-${bot ? "bot" : tint} ${extra}`, "aria-hidden": "true" });
  face.append(ICONS[marks.get(id)] ? icon(marks.get(id)) : (name || "?").slice(0, 1).toUpperCase());
  return face;
}

/** Says something to screen readers at once. */
export function speak(text) {
  find("spoken").textContent = text;
}
