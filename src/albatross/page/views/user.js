// The belief about one user: the region of the vector, the ratings, the best items now.

import { post } from "../api.js";
import { Bar, Choose, Failure, Figure, Legend, Name, Needs, Notice, Table, clock, number, rangeOf, useAnswer, whole } from "../parts.js";
import { html, useState } from "../vendor/vendor.js";
import { findUsers } from "./try.js";

export function User({ query }) {
  return html`<h1 tabindex="-1">User</h1>
    <p class="lead">A user's ratings, the model's belief about the user, and the best items now.</p>
    <${Needs} scopes=${["read"]}><${Search} query=${query} /></${Needs}>`;
}

function Search({ query }) {
  const user = query.get("user") ?? "";
  const [given, setGiven] = useState(user);
  return html`
    <form class="card ask" onSubmit=${(event) => { event.preventDefault(); location.hash = `/user?${new URLSearchParams({ user: given })}`; }}>
      <div class="row">
        <${Choose} id="user-who" testid="user-user" label="User" value=${given} onChange=${setGiven} find=${findUsers} />
        <button class="primary">Look</button>
      </div>
    </form>
    ${user && html`<${Beliefs} key=${user} user=${user} query=${query} />`}`;
}

function Beliefs({ user, query }) {
  const { answer, error } = useAnswer((abort) => post("/v1/users/get", { user, n: 10, history: 50 }, abort), [user]);
  if (answer === null) return html`<${Failure} error=${error} />`;
  const named = answer.history.some((one) => one.event);
  return html`
    <p class="decided"><${Name} of=${user} /> has ${whole(answer.ratings)} ratings${answer.pending.length > 0 && html`; pending: ${answer.pending.map((item, at) => html`${at > 0 && ", "}<${Name} of=${item} />`)}`}.
      ${" "}<a href=${`#/try?${new URLSearchParams({ user })}`}>Ask for them</a> · <a href=${`#/whatif?${new URLSearchParams({ user })}`}>What if?</a></p>
    <div class="pair">
      <${Ellipse} region=${answer.ellipsoid} query=${query} user=${user} />
      <${Best} top=${answer.top} />
    </div>
    <section class="card" aria-label="History">
      <h2>History</h2>
      <${Table} caption=${`The latest ratings of ${user}`} hidden=${true}
        columns=${[
          { title: "event", show: whole }, { title: "when", text: true, show: clock }, { title: "item", text: true, show: (value) => html`<${Name} of=${value} />` },
          { title: "rating" }, ...(named ? [{ title: "named", text: true, show: (value) => value && html`<${Name} of=${value} />` }] : []),
          { title: "expected", show: (value) => (value === null ? "" : number(value)) }, { title: "decision", text: true, show: (value) => value && html`<a href=${`#/why?${new URLSearchParams({ id: value })}`}>${value}</a>` },
        ]}
        rows=${answer.history.map((one) => [one.seq, one.at, one.item, one.rating, ...(named ? [one.event] : []), one.mean, one.decision_id])} />
    </section>`;
}

/** The items with the best scores. */
export function Best({ top, title = "Best items now", id = "user-best", about = "By score, which is mean + bonus.", others = null }) {
  const range = rangeOf(top);
  const before = new Map((others ?? []).map((one) => [one.item, one.rank]));
  const moved = (one) => {
    if (others === null) return null;
    if (!before.has(one.item)) return html`<span class="moved up">new</span>`;
    const by = before.get(one.item) - one.rank;
    return by === 0 ? html`<span class="moved">same</span>` : html`<span class=${by > 0 ? "moved up" : "moved down"}>${by > 0 ? `▲ ${by}` : `▼ ${-by}`}<span class="unseen"> places</span></span>`;
  };
  return html`<${Figure} id=${id} title=${title} about=${about}
    columns=${[{ name: "rank", title: "place", show: whole }, { name: "item", title: "item", text: true, show: (value) => html`<${Name} of=${value} />` }, { name: "mean", title: "mean" }, { name: "bonus", title: "bonus" }, { name: "score", title: "score" }]}
    rows=${top.map((one) => [one.rank, one.item, one.mean, one.bonus, one.score])}>
    <${Legend} />
    <ol class="ranked">${top.map((one) => html`<li key=${one.item}><${Name} of=${one.item} /><${Bar} mean=${one.mean} score=${one.score} range=${range} /><span class="number">${number(one.score)}</span>${moved(one)}</li>`)}</ol>
  </${Figure}>`;
}

/** The projection of |q − center|_V ≤ radius on two coordinates: the matrix radius² V⁻¹, restricted to these two. */
export function shadow(region, across, up) {
  const entry = (a, b) => region.radius ** 2 * region.axes.reduce((sum, axis, at) => sum + (axis[a] * axis[b]) / region.eigenvalues[at], 0);
  const [xx, xy, yy] = [entry(across, across), entry(across, up), entry(up, up)];
  const middle = (xx + yy) / 2;
  const apart = Math.hypot((xx - yy) / 2, xy);
  return {
    center: [region.center[across], region.center[up]],
    half: [Math.sqrt(Math.max(middle + apart, 0)), Math.sqrt(Math.max(middle - apart, 0))],
    turn: (Math.atan2(2 * xy, xx - yy) * 90) / Math.PI,
    reach: [Math.sqrt(Math.max(xx, 0)), Math.sqrt(Math.max(yy, 0))],
  };
}

export function Ellipse({ region, query, user }) {
  if (region === null) {
    return html`<section class="card" data-testid="user-ellipse" aria-label="Belief"><h2>Belief</h2><${Notice}>This policy has no confidence region for users.</${Notice}></section>`;
  }
  const rank = region.center.length;
  const within = (name, other) => Math.min(Math.max(Number(query.get(name) ?? other) || 0, 0), rank - 1);
  const across = within("x", 0);
  const up = within("y", Math.min(1, rank - 1));
  const seen = shadow(region, across, up);
  const far = 1.15 * Math.max(Math.abs(seen.center[0]) + seen.half[0], Math.abs(seen.center[1]) + seen.half[0], 1e-9);
  const choose = (name) => (event) => {
    const to = new URLSearchParams(query);
    to.set("user", user);
    to.set(name, event.target.value);
    location.hash = `${location.hash.split("?")[0]}?${to}`;
  };
  const axis = (name, value, label) => html`<label class="field narrow"><span>${label}</span><select value=${value} onChange=${choose(name)}>${region.center.map((_, at) => html`<option value=${at} selected=${at === value}>${at + 1}</option>`)}</select></label>`;
  const line = { "stroke-width": far / 150, "vector-effect": "non-scaling-stroke" };
  const said = `On coordinates ${across + 1} and ${up + 1} the user is estimated at ${number(seen.center[0])}, ${number(seen.center[1])}, ± ${number(seen.reach[0])} and ± ${number(seen.reach[1])}.`;
  return html`<${Figure} id="user-ellipse" title="Belief" about="The confidence region of the user's vector, on two coordinates."
    columns=${[{ name: "coordinate", title: "coordinate", show: whole }, { name: "mean", title: "mean" }, { name: "give_or_take", title: "±" }]}
    rows=${region.center.map((mean, at) => [at + 1, mean, shadow(region, at, at).reach[0]])}>
    <div class="row">${axis("x", across, "Across")}${axis("y", up, "Up")}</div>
    <svg class="ellipse" viewBox=${`${-far} ${-far} ${2 * far} ${2 * far}`} role="img" aria-label=${said}>
      <line class="axis" x1=${-far} y1="0" x2=${far} y2="0" ...${line} /><line class="axis" x1="0" y1=${-far} x2="0" y2=${far} ...${line} />
      <ellipse cx="0" cy="0" rx=${seen.half[0]} ry=${seen.half[1]} transform=${`translate(${seen.center[0]} ${-seen.center[1]}) rotate(${-seen.turn})`} vector-effect="non-scaling-stroke" />
      <circle cx=${seen.center[0]} cy=${-seen.center[1]} r=${far / 60} />
    </svg>
    <p class="about">${said}</p>
  </${Figure}>`;
}
