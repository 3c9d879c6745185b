// For developers: the gateway events and REST calls that belong to what a person did last.

import { fill, find, h, icon, iconButton } from "./dom.js";
import { on, person } from "./state.js";

const MOST = 400;
const panel = find("inspector");
const toggle = find("open-inspector");
let groups = [{ title: "Before you did anything", entries: [] }];
let all = false;
let due = false;

toggle.append(icon("inspect"));
toggle.title = "Request inspector";
toggle.addEventListener("click", () => show(panel.hidden));

export function show(open) {
  panel.hidden = !open;
  document.body.classList.toggle("inspecting", open);
  toggle.setAttribute("aria-expanded", String(open));
  if (open) {
    draw();
    panel.querySelector("button").focus();
  } else {
    toggle.focus();
  }
}

// A redraw removes the focused element; the key then comes from the body.
document.addEventListener("keydown", (event) => {
  const here = panel.contains(event.target) || event.target === document.body;
  if (event.key === "Escape" && !panel.hidden && here) show(false);
});

on("stream:cause", ({ name, data, at }) => {
  const who = person(data.author_id || data.user_id).name;
  const kinds = { 2: "ran a command", 3: "pressed or picked", 4: "typed an option", 5: "submitted a form" };
  const title = name === "message.create" ? `${who} wrote a message` : `${who} ${kinds[data.kind] || "interacted"}`;
  groups.push({ title, at, entries: [] });
  groups = groups.slice(-30);
  plan();
});
on("stream:traffic", (entry) => {
  const { entries } = groups[groups.length - 1];
  entries.push(entry);
  if (entries.length > MOST) entries.shift();
  plan();
});

/** Drawn at most once per frame, and only while somebody looks. */
function plan() {
  if (panel.hidden || due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    draw();
  });
}

function draw() {
  const open = new Set([...panel.querySelectorAll("details[open]")].map((one) => one.dataset.seq));
  const top = panel.querySelector(".inspector-body")?.scrollTop || 0;
  const shown = all ? [...groups].reverse() : groups.slice(-1);
  fill(panel, [
    h(
      "header",
      {},
      h("h2", {}, "Request inspector"),
      iconButton("close", "Close the inspector", () => show(false)),
    ),
    h(
      "label",
      { class: "choice" },
      h("input", {
        type: "checkbox",
        checked: all,
        onchange: (event) => {
          all = event.currentTarget.checked;
          draw();
        },
      }),
      "Earlier interactions too",
    ),
    h(
      "div",
      { class: "inspector-body", tabindex: "0", "aria-label": "Events and calls" },
      shown.map((group) =>
        h(
          "section",
          {},
          h(
            "h3",
            {},
            group.title,
            group.at && h("span", { class: "when" }, new Date(group.at * 1000).toLocaleTimeString()),
          ),
          group.entries.length
            ? group.entries.map((entry) => line(entry, open))
            : h("p", { class: "member-note" }, "Nothing yet."),
        ),
      ),
    ),
  ]);
  panel.querySelector(".inspector-body").scrollTop = top;
}

function line(entry, open) {
  const rest = entry.kind === "rest" && entry.data.status !== undefined;
  const good = rest && entry.data.status < 400;
  const badge = rest ? entry.data.method : entry.kind === "rest" ? "REST" : "EVENT";
  const details = h(
    "details",
    { data: { seq: String(entry.seq) }, open: open.has(String(entry.seq)) },
    h(
      "summary",
      {},
      h("span", { class: `method ${rest ? "rest" : "event"}` }, badge),
      h("span", { class: "path" }, rest ? entry.data.path : entry.name),
      rest && h("span", { class: `status ${good ? "good" : "bad"}` }, String(entry.data.status)),
    ),
  );
  const write = () => {
    if (!details.open || details.children.length > 1) return;
    const { session, ...data } = entry.data;
    details.append(
      h("pre", { class: "json", tabindex: "0" }, JSON.stringify(data.d === undefined ? data : data.d, null, 2)),
    );
  };
  details.addEventListener("toggle", write);
  write();
  return details;
}
