// The log, event by event: the model as it was at any event, and a check that the log alone gives the served state.

import { get, post } from "../api.js";
import { Choose, Failure, Needs, Notice, clock, number, useAnswer, whole } from "../parts.js";
import { html, useEffect, useState } from "../vendor/vendor.js";
import { Events, Histories } from "./live.js";
import { findUsers } from "./try.js";
import { Best, Ellipse } from "./user.js";

const AROUND = 10;

export function Log({ query }) {
  return html`<h1 tabindex="-1">Log</h1>
    <p class="lead">Go back to any event: what the model had learned by then, also about a user.</p>
    <${Needs} scopes=${["read", "admin"]}><${Scrub} query=${query} /></${Needs}>`;
}

/** Each shard has its own log and numbers. With one shard, the choice is hidden. */
function Scrub({ query }) {
  const version = useAnswer((abort) => get("/v1/version", abort), []);
  const shards = version.answer?.shards ?? 1;
  const shard = shards === 1 ? null : Math.min(Math.max(Math.trunc(Number(query.get("shard"))) || 0, 0), shards - 1);
  const head = useAnswer((abort) => (version.answer === null || shard === null ? version.answer : post("/v1/events/list", { n: 1, shard }, abort)), [version.answer, shard]);
  const last = head.answer?.seq ?? 1;
  const wanted = Math.min(Math.max(Number(query.get("seq")) || last, 1), last);
  const user = query.get("user") ?? "";
  const [at, setAt] = useState(wanted);
  const [who, setWho] = useState(user);
  useEffect(() => setAt(wanted), [wanted]);
  const go = (chosen) => {
    const told = { seq: wanted, user, shard: shard ?? "", ...chosen };
    location.hash = `/log?${new URLSearchParams(Object.entries(told).filter(([, value]) => value !== ""))}`;
  };
  if (head.answer === null) return html`<${Failure} error=${version.error ?? head.error} />`;
  return html`
    <form class="card ask" onSubmit=${(event) => { event.preventDefault(); go({ seq: at, user: who }); }} noValidate>
      <label class="field"><span>Event <strong data-testid="log-at">${whole(at)}</strong> of ${whole(last)}</span>
        <input type="range" min="1" max=${last} value=${at} data-testid="log-scrub" onInput=${(event) => setAt(Number(event.target.value))} onChange=${(event) => go({ seq: Number(event.target.value) })} />
      </label>
      <div class="row">
        ${shard !== null && html`<label class="field"><span>Log of shard</span>
          <select data-testid="log-shard" value=${shard} onChange=${(event) => go({ shard: event.target.value, seq: "", user: "" })}>
            ${Array.from({ length: shards }, (_, one) => html`<option value=${one} selected=${one === shard}>${one}</option>`)}
          </select></label>`}
        <${Choose} id="log-who" testid="log-user" label="And user" value=${who} onChange=${setWho} find=${findUsers} />
        <button class="primary">Look back</button>
      </div>
    </form>
    <${Past} seq=${wanted} user=${user} of=${shard === null ? {} : { shard }} query=${query} />
    <${Verify} />`;
}

function Past({ seq, user, of, query }) {
  const past = useAnswer((abort) => post("/v1/events/past", { seq, n: 5, ...of, ...(user ? { user } : {}) }, abort), [seq, user, of.shard]);
  const events = useAnswer((abort) => post("/v1/events/list", { before: seq + 1, n: AROUND, ...of }, abort), [seq, of.shard]);
  const told = past.answer;
  return html`
    <${Failure} error=${past.error} />
    <div role="status">${past.busy && html`<p class="about">Replaying up to event ${whole(seq)} …</p>`}</div>
    ${told && html`
      <dl class="facts" data-testid="log-past" data-seq=${told.seq}>
        <div><dt>When</dt><dd class="small">${clock(told.at)}</dd></div>
        <div><dt>Ratings</dt><dd>${whole(told.ratings)}</dd></div>
        <div><dt>Decisions</dt><dd>${whole(told.decisions)}</dd></div>
        <div><dt>Users</dt><dd>${whole(told.users)}</dd></div>
        <div><dt>Items</dt><dd>${whole(told.items)}</dd></div>
        <div><dt>State id</dt><dd class="small"><code>${told.state_id.slice(0, 16)}</code></dd></div>
      </dl>
      ${told.ratings > 0 && html`<${Histories} series=${told.series} />`}
      ${user && (told.user === null ? html`<${Notice}>This user had no ratings by then.</${Notice}>` : html`<div class="pair"><${Ellipse} region=${told.user.ellipsoid} query=${query} user=${user} /><${Best} top=${told.user.top} title="Best items then" /></div>`)}`}
    <section class="card" aria-label="Events up to there">
      <h2>Events up to there</h2>
      <${Events} events=${events.answer?.events ?? []} />
    </section>`;
}

function Verify() {
  const [state, setState] = useState({ busy: false, report: null, error: null });
  async function run() {
    setState({ busy: true, report: null, error: null });
    try {
      setState({ busy: false, report: await post("/v1/verify", {}), error: null });
    } catch (error) {
      setState({ busy: false, report: null, error });
    }
  }
  const { busy, report, error } = state;
  return html`<section class="card" aria-label="Verify">
    <h2>Verify</h2>
    <p class="about">Rebuild the model from the log alone, checking every event, and compare it with every snapshot, bit for bit.</p>
    <button type="button" class="primary" data-testid="log-verify" disabled=${busy} onClick=${run}>${busy ? "Verifying …" : "Verify now"}</button>
    <${Failure} error=${error} />
    <div role="status">${report && html`<div data-testid="log-verdict">
      <p class=${report.passed ? "good" : "bad"}><strong>${report.passed ? "Passed" : "Failed"}</strong>${report.detail && `: ${report.detail}`}</p>
      <p class="about">${whole(report.seq)} events, ${whole(report.ratings)} ratings, ${whole(report.decisions)} decisions in ${number(report.seconds, 1)} s; ${whole(report.confirmed.length)} snapshots confirmed, ${whole(report.skipped)} skipped.
        ${" "}State <code>${report.state_id}</code></p></div>`}</div>
  </section>`;
}
