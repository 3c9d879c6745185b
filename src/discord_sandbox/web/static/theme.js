// The theme: light, dark, or the system's.

import { fill, find, icon } from "./dom.js";

const KEY = "sandbox-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const LOOK = {
  auto: ["auto", "Theme: like the system"],
  light: ["sun", "Theme: light"],
  dark: ["moon", "Theme: dark"],
};
const button = find("theme");
let chosen = Object.hasOwn(LOOK, localStorage.getItem(KEY)) ? localStorage.getItem(KEY) : "auto";

function apply() {
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  const [name, label] = LOOK[chosen];
  fill(button, [icon(name)]);
  button.setAttribute("aria-label", `${label}. Change`);
  button.title = label;
}

button.addEventListener("click", () => {
  chosen = NEXT[chosen];
  localStorage.setItem(KEY, chosen);
  apply();
});
apply();
