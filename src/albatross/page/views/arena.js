// A running simulation: its curves, what is shown to whom, and the speed.

import { listen, post } from "../api.js";
import { Curves } from "../charts.js";
import { Failure, Figure, Name, Notice, Table, number, signed, whole } from "../parts.js";
import { Choice, Race, Swatch, colourOf, dashOf } from "../race.js";
import { html, useEffect, useRef, useState } from "../vendor/vendor.js";

const SPEEDS = [[10, "10"], [100, "100"], [1000, "1,000"], [2000, "2,000"], [10000, "10,000"], [null, "fastest"]];
const CALM = 2000; // milliseconds between two pictures with reduced motion

const PHASES = { connecting: "connecting …", waiting: "the simulation has ended or is away; trying again", paused: "paused while hidden" };

export function Arena() {
  const [phase, setPhase] = useState("connecting");
  const [picture, setPicture] = useState(null);
  const [speed, setSpeed] = useState(undefined);
  useEffect(() => {
    const calm = matchMedia("(prefers-reduced-motion: reduce)");
    let timer = 0;
    let newest = null;
    const draw = () => {
      timer = 0;
      setPicture(newest);
    };
    const stop = listen("/v1/arena/stream", (kind, told) => {
      if (kind === "speed") return setSpeed(told.speed);
      const begins = newest === null || told.done >= told.horizon;
      newest = told;
      if (begins || !calm.matches) {
        clearTimeout(timer);
        return draw();
      }
      return (timer ||= setTimeout(draw, CALM));
    }, setPhase);
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  const ended = picture !== null && picture.done >= picture.horizon;
  const now = ended ? "done" : phase !== "live" ? PHASES[phase] : speed === 0 ? "paused" : "running";
  return html`<h1 tabindex="-1">Arena</h1>
    <p class="lead">At the same seed every policy meets the same users in the same order, and chooses what to show them.</p>
    <p class=${`phase ${ended ? "" : phase}`} role="status" data-testid="arena-phase"><span class="dot" aria-hidden="true"></span>${now}</p>
    ${picture && html`<${Running} picture=${picture} speed=${speed} ended=${ended} />`}`;
}

function Running({ picture, speed, ended }) {
  const { dataset, users, items, protocol, seeds, horizon, done } = picture;
  return html`
    <dl class="facts">
      <div><dt>Data set</dt><dd class="small"><${Name} of=${dataset} /></dd></div>
      <div><dt>Users</dt><dd>${whole(users)}</dd></div>
      <div><dt>Items</dt><dd>${whole(items)}</dd></div>
      <div><dt>Seeds</dt><dd>${whole(seeds.length)}</dd></div>
      <div><dt>Items are shown</dt><dd class="small">${protocol}</dd></div>
      <div><dt>Steps</dt><dd data-testid="arena-done">${whole(done)}<small>of ${whole(horizon)}</small></dd></div>
    </dl>
    <progress max=${horizon} value=${done} aria-label="Steps done"></progress>
    ${!ended && html`<${Speed} speed=${speed} />`}
    <${Race} id="arena-curves" title="Curves" panel=${picture} />
    <${Standings} picture=${picture} />
    <${Differences} picture=${picture} />
    <${Ticker} picture=${picture} />`;
}

function Speed({ speed }) {
  const before = useRef(null); // the speed before the pause
  const [error, setError] = useState(null);
  const set = (wanted) => post("/v1/arena/speed", { speed: wanted }).then(() => setError(null), setError);
  if (speed !== 0) before.current = speed;
  const other = speed && !SPEEDS.some(([known]) => known === speed) ? [[speed, whole(speed)]] : [];
  return html`<section class="card row speed" aria-label="Speed">
    <button type="button" class="primary" data-testid="arena-pause" aria-pressed=${speed === 0} onClick=${() => set(speed === 0 ? before.current ?? null : 0)}>${speed === 0 ? "Continue" : "Pause"}</button>
    <span>Steps per second</span>
    <${Choice} legend="Steps per second" name="speed" testid="arena-speed" options=${[...other, ...SPEEDS]} value=${speed} onChange=${set} />
    <${Failure} error=${error} />
  </section>`;
}

function Standings({ picture }) {
  const { policies, best } = picture;
  const now = (curve) => ["mean", "low", "high"].map((name) => curve[name].at(-1));
  const between = ([, low, high], show) => (low === null ? "–" : `${show(low, 0)} to ${show(high, 0)}`);
  const rows = policies
    .map((one, place) => ({ place, label: one.label, regret: now(one.curves.regret), more: now(one.difference) }))
    .sort((a, b) => a.regret[0] - b.regret[0])
    .map(({ place, label, regret, more }) => [{ place, label }, number(regret[0], 0), between(regret, number), ...(place === best ? ["best", ""] : [signed(more[0], 0), between(more, signed)])]);
  const as = (title) => ({ title, show: (value) => value });
  const columns = [
    { title: "policy", text: true, show: ({ place, label }) => html`<span class="said"><${Swatch} place=${place} /><${Name} of=${label} /></span>` },
    as("regret"), as("95 % interval"), as("to the best"), as("95 % interval"),
  ];
  return html`<section class="card" aria-label="Standings" data-testid="arena-standings">
    <h2>Standings</h2>
    <p class="about">Regret so far, and how much more than the best, paired by seed.</p>
    <${Table} caption="Regret of each policy so far" hidden=${true} columns=${columns} rows=${rows} />
  </section>`;
}

function Differences({ picture }) {
  const { steps, horizon, policies, best } = picture;
  const others = policies.map((one, place) => ({ ...one, place })).filter(({ place }) => place !== best);
  if (others.length === 0) return html`<${Notice}>A single policy has no comparison.</${Notice}>`;
  const series = others.map(({ label, place, difference }) => ({
    label, values: difference.mean, colour: colourOf(place), dash: dashOf(place),
    ...(difference.low.at(-1) !== null && { lower: difference.low, upper: difference.high }),
  }));
  const show = (value) => number(value, 1);
  return html`<${Figure} id="arena-difference" title="Difference to the best" about=${`Regret minus that of ${policies[best].label}, paired by seed: the same users, the same noise.`}
    columns=${[{ name: "step", title: "step", show: whole }, ...others.flatMap(({ label }) => [{ name: label, title: label, show }, { name: `${label} from`, title: "from", show }, { name: `${label} to`, title: "to", show }])]}
    rows=${steps.map((step, at) => [step, ...others.flatMap(({ difference }) => [difference.mean[at], difference.low[at], difference.high[at]])])}>
    <${Curves} x=${steps} reach=${[0, horizon]} series=${series} height=${200} label=${`Regret minus that of ${policies[best].label}`}
      say=${(at) => html`after ${whole(steps[at])} steps: ${others.map(({ label, place, difference }) => html`<span class="said" key=${label}><${Swatch} place=${place} />${label} <strong>${signed(difference.mean[at], 0)}</strong> </span>`)}`} />
  </${Figure}>`;
}

/** The item that each policy showed to the same user, and the rating. */
function Ticker({ picture }) {
  const { ticker, policies, seeds } = picture;
  const shown = ({ item, rating, missed }) => html`<${Name} of=${item} /> <span class=${missed > 0 ? "missed" : "good"}>${number(rating, Number.isInteger(rating) ? 0 : 2)}${missed > 0 && html`<small> best ${number(rating + missed, Number.isInteger(rating + missed) ? 0 : 2)}</small>`}</span>`;
  const columns = [
    { title: "step", show: whole },
    { title: "user", text: true, show: (value) => html`<${Name} of=${value} />` },
    ...policies.map(({ label }) => ({ title: label, text: true, show: shown })),
  ];
  return html`<section class="card ticker" aria-label="What is shown to whom" data-testid="arena-ticker">
    <h2>What is shown to whom</h2>
    <p class="about">The latest steps at seed ${seeds[0]}: the item each policy showed, and the rating it got.</p>
    <${Table} caption="The latest steps" hidden=${true} columns=${columns} rows=${ticker.map((one) => [one.step, one.user, ...one.shown])} />
  </section>`;
}
