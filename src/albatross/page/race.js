// Curves of several policies, with a choice of policies, quantity and seed. Used by the arena and the reports.

import { Curves } from "./charts.js";
import { Figure, Name } from "./figures.js";
import { number, whole } from "./numbers.js";
import { html, useState } from "./vendor/vendor.js";

export const QUANTITIES = { regret: "regret", pseudo_regret: "pseudo-regret", ndcg: "NDCG" };
const ABOUT = {
  regret: "Best mean reward minus the reward received, summed over the steps: less is better.",
  pseudo_regret: "Best mean reward minus the mean reward of the item shown, summed over the steps: less is better.",
  ndcg: "Mean quality of the rankings so far, at most 1: more is better.",
};
const DASHES = [undefined, [8, 4], [2, 3], [8, 3, 2, 3]];
const N_COLOURS = 7;

export const colourOf = (place) => `curve-${place % N_COLOURS}`;
export const dashOf = (place) => DASHES[Math.floor(place / N_COLOURS) % DASHES.length];
export const digitsOf = (quantity) => (quantity === "ndcg" ? 4 : 1);

/** A choice among a few words, by mouse and by arrow keys. */
export function Choice({ legend, name, options, value, onChange, testid }) {
  return html`<fieldset class="choice" data-testid=${testid}>
    <legend class="unseen">${legend}</legend>
    ${options.map(([given, title]) => html`<label key=${title}><input type="radio" name=${name} checked=${given === value} onChange=${() => onChange(given)} /><span>${title}</span></label>`)}
  </fieldset>`;
}

/** Check boxes for the policies, each in its colour. */
function Who({ policies, hidden, onToggle }) {
  return html`<fieldset class="who"><legend class="unseen">Policies</legend>
    ${policies.map(({ label }, place) => html`<label key=${label}><input type="checkbox" checked=${!hidden.has(label)} onChange=${() => onToggle(label)} /><${Swatch} place=${place} /><${Name} of=${label} /></label>`)}
  </fieldset>`;
}

/** A small sample of the line of a policy. */
export const Swatch = ({ place }) => html`<svg class="line" viewBox="0 0 24 8" aria-hidden="true"><line x1="0" y1="4" x2="24" y2="4" stroke-width="3" stroke-dasharray=${dashOf(place)?.join(" ")} style=${{ stroke: `var(--${colourOf(place)})` }} /></svg>`;

/**
 * `panel`: {horizon, steps, seeds, policies: [{label, curves: {regret: {mean, low, high, seeds?}, …}}]}; nulls where there is no interval.
 * `first`: the quantity drawn first.
 */
export function Race({ id, title, panel, first = "regret", height = 300 }) {
  const { steps, policies } = panel;
  const [quantity, setQuantity] = useState(first);
  const [hidden, setHidden] = useState(new Set());
  const [seed, setSeed] = useState(null);
  const known = Object.keys(QUANTITIES).filter((name) => policies.some((one) => one.curves[name]));
  const present = policies.map((one, place) => ({ ...one, place, curve: one.curves[quantity] })).filter((one) => one.curve);
  const drawn = present.filter((one) => !hidden.has(one.label));
  const bySeed = present.every((one) => one.curve.seeds);
  const of = (curve) => (seed === null ? curve.mean : curve.seeds[seed] ?? []);
  const toggle = (label) => setHidden((before) => new Set(before.has(label) ? [...before].filter((one) => one !== label) : [...before, label]));
  const series = drawn.map(({ label, place, curve }) => ({
    label, values: of(curve), colour: colourOf(place), dash: dashOf(place),
    ...(seed === null && curve.low.at(-1) !== null && { lower: curve.low, upper: curve.high }),
  }));
  const columns = [{ name: "step", title: "step", show: whole }, ...present.flatMap(({ label }) => (seed === null
    ? [{ name: label, title: label }, { name: `${label} from`, title: "from" }, { name: `${label} to`, title: "to" }]
    : [{ name: label, title: label }]))].map((column) => ({ show: (value) => number(value, digitsOf(quantity)), ...column }));
  const rows = steps.map((step, at) => [step, ...present.flatMap(({ curve }) => (seed === null ? [curve.mean[at], curve.low[at], curve.high[at]] : [of(curve)[at]]))]);
  const name = QUANTITIES[quantity];
  const say = (at) => html`after ${whole(steps[at])} steps: ${drawn.map(({ label, place, curve }) => html`<span class="said" key=${label}><${Swatch} place=${place} />${label} <strong>${number(of(curve)[at], digitsOf(quantity))}</strong> </span>`)}`;
  const about = `${ABOUT[quantity]} ${seed === null ? `Mean of ${panel.seeds.length} seeds${panel.seeds.length > 1 ? ", with the 95 % interval of the mean as a band" : ""}.` : `Seed ${panel.seeds[seed]} alone.`}`;
  return html`<${Figure} id=${id} title=${title} about=${about} columns=${columns} rows=${rows}>
    <div class="row controls">
      ${known.length > 1 && html`<${Choice} legend=${`Quantity of ${title}`} name=${`${id}-quantity`} testid=${`${id}-quantity`} options=${known.map((one) => [one, QUANTITIES[one]])} value=${quantity} onChange=${setQuantity} />`}
      ${bySeed && panel.seeds.length > 1 && html`<label class="inline"><span>Seeds</span><select data-testid=${`${id}-seed`} onChange=${(event) => setSeed(event.target.value === "" ? null : Number(event.target.value))}>
        <option value="" selected=${seed === null}>mean of all</option>${panel.seeds.map((number, at) => html`<option value=${at} selected=${seed === at}>${number}</option>`)}</select></label>`}
    </div>
    <${Who} policies=${policies} hidden=${hidden} onToggle=${toggle} />
    <${Curves} x=${steps} reach=${[0, panel.horizon]} series=${series} height=${height} say=${say} label=${`${name} over steps of ${drawn.map((one) => one.label).join(", ") || "no policy"}`} />
  </${Figure}>`;
}
