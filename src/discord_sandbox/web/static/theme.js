// Light, dark, or whatever the system says.

import { fill, find, icon } from "./dom.js";

const KEY = "signoff-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const LOOK = {
  auto: ["auto", "Theme: like the system"],
  light: ["sun", "Theme: light"],
  dark: ["moon", "Theme: dark"],
};
const button = find("theme");
let chosen = localStorage.getItem(KEY) || "auto";

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
