// At phone width the sides are drawers; on a wide screen the member list can be folded away.

import { find, icon } from "./dom.js";
import { on } from "./state.js";

const narrow = window.matchMedia("(max-width: 820px)");
const sides = [
  { panel: find("places"), button: find("open-places"), name: "menu" },
  { panel: find("people"), button: find("open-people"), name: "people" },
];
const shade = find("shade");

for (const side of sides) {
  side.button.append(icon(side.name));
  side.button.title = side.button.getAttribute("aria-label");
  side.button.addEventListener("click", () => toggle(side));
  side.panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && narrow.matches) {
      closeAll();
      side.button.focus();
    }
  });
}
shade.addEventListener("click", closeAll);
narrow.addEventListener("change", reset);

function toggle(side) {
  const open = narrow.matches ? !side.panel.classList.contains("open") : side.panel.hidden;
  if (!narrow.matches) {
    side.panel.hidden = !open;
  } else {
    closeAll();
    side.panel.classList.toggle("open", open);
    side.panel.inert = !open;
    shade.hidden = !open;
    if (open) side.panel.querySelector("button")?.focus();
  }
  side.button.setAttribute("aria-expanded", String(open));
}

function closeAll() {
  if (!narrow.matches) return;
  for (const side of sides) {
    side.panel.classList.remove("open");
    side.panel.inert = true;
    side.button.setAttribute("aria-expanded", "false");
  }
  shade.hidden = true;
}

function reset() {
  for (const side of sides) {
    side.panel.hidden = false;
    side.panel.inert = false;
    side.panel.classList.remove("open");
    side.button.setAttribute("aria-expanded", String(!narrow.matches));
  }
  shade.hidden = true;
  closeAll();
}

reset();
on("opened", closeAll);
