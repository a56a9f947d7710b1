// The figures of a report, drawn from its data. Without scripts, and in print, the static pictures are shown.

import { Race } from "./race.js";
import { html, render } from "./vendor/vendor.js";

const { panels, figures } = JSON.parse(document.getElementById("races").textContent);

document.querySelectorAll(".race").forEach((place, number) => {
  const drawn = figures[number].map(([quantity, title, panel], at) => html`<${Race} key=${at} id=${`race-${number}-${at}`} title=${title} panel=${panels[panel]} first=${quantity} />`);
  render(html`<p class="about">${place.getAttribute("aria-label").split(". ")[0]}</p><div class="panels">${drawn}</div>`, place);
});
document.documentElement.classList.add("drawn");
