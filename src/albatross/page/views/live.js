// Live state of the service, by server-sent events; paused while the page is hidden.

import { get, listen, post, text } from "../api.js";
import { Curves } from "../charts.js";
import { Figure, Name, Needs, Table, bytes, clock, number, share, whole } from "../parts.js";
import { html, useEffect, useRef, useState } from "../vendor/vendor.js";

const TAIL = 12;
const PACE = 120; // seconds of history of the pace
const SURE = 1.96; // half width of a 95 % interval in standard errors

const PHASES = { connecting: "connecting …", live: "live", waiting: "the service is away; trying again", paused: "paused while hidden" };

/** Median and 99th percentile of the request times since the last call, from the counters of /metrics. */
export function latencies(before, now) {
  const counts = new Map();
  for (const [bound, count] of now) counts.set(bound, count - (before.get(bound) ?? 0));
  const total = counts.get(Infinity) ?? 0;
  const within = (part) => [...counts].find(([, count]) => total > 0 && count >= part * total)?.[0] ?? null;
  return { total, middle: within(0.5), most: within(0.99) };
}

/** Cumulative counts by upper bound in seconds, over recommendations and ratings. */
export function buckets(exposed) {
  const sums = new Map();
  for (const found of exposed.matchAll(/^albatross_request_seconds_bucket\{path="\/v1\/(?:recommend|feedback)",le="([^"]+)"\} (\d+)$/gm)) {
    const bound = found[1] === "+Inf" ? Infinity : Number(found[1]);
    sums.set(bound, (sums.get(bound) ?? 0) + Number(found[2]));
  }
  return sums;
}

const milliseconds = (bound) => (bound === null ? "–" : bound === Infinity ? "over 5 s" : `≤ ${number(1000 * bound, bound < 0.01 ? 1 : 0)} ms`);

export function Live() {
  return html`<h1 tabindex="-1">Live</h1><${Needs} scopes=${["read"]}><${Watch} /></${Needs}>`;
}

function Watch() {
  const [phase, setPhase] = useState("connecting");
  const [version, setVersion] = useState(null);
  const [series, setSeries] = useState(null);
  const [pace, setPace] = useState([]);
  const [disk, setDisk] = useState(null);
  const [tail, setTail] = useState([]);
  const [took, setTook] = useState(null);
  const counted = useRef(null);
  const buffered = useRef(new Map());
  useEffect(() => listen("/v1/stream", (kind, told) => {
    if (kind === "series") return setSeries(told);
    const now = performance.now() / 1000;
    const before = counted.current;
    if (before !== null && told.ratings >= before.ratings && told.decisions >= before.decisions && now > before.now) {
      const seconds = now - before.now;
      const one = { at: Date.now() / 1000, decisions: (told.decisions - before.decisions) / seconds, ratings: (told.ratings - before.ratings) / seconds };
      setPace((kept) => [...kept.filter((point) => point.at > one.at - PACE), one]);
    }
    counted.current = { now, ratings: told.ratings, decisions: told.decisions };
    return setVersion(told);
  }, setPhase), []);
  const seq = version?.seq;
  useEffect(() => {
    if (seq === undefined) return undefined;
    const abort = new AbortController();
    const ignore = () => {}; // the stream reports when the service is away
    post("/v1/events/list", { n: TAIL }, abort.signal).then((told) => setTail(told.events), ignore);
    get("/v1/disk", abort.signal).then(setDisk, ignore);
    text("/metrics", abort.signal).then((exposed) => {
      const now = buckets(exposed);
      const found = latencies(buffered.current, now);
      buffered.current = now;
      if (found.total > 0) setTook(found);
    }, ignore);
    return () => abort.abort();
  }, [seq]);
  const last = pace.at(-1);
  return html`
    <p class=${`phase ${phase}`} role="status" data-testid="live-phase"><span class="dot" aria-hidden="true"></span>${PHASES[phase]}</p>
    <dl class="facts">
      <div><dt>Ratings</dt><dd data-testid="live-ratings">${whole(version?.ratings)}</dd></div>
      <div><dt>Decisions</dt><dd>${whole(version?.decisions)}</dd></div>
      <div><dt>Users</dt><dd>${whole(version?.users)}</dd></div>
      <div><dt>Items</dt><dd>${whole(version?.items)}</dd></div>
      <div><dt>Ratings per second</dt><dd>${number(last?.ratings ?? 0, 1)}</dd></div>
      <div><dt>Response time</dt><dd>${milliseconds(took?.middle ?? null)}<small>99 %: ${milliseconds(took?.most ?? null)}</small></dd></div>
    </dl>
    <${Histories} series=${series} />
    <div class="pair">
      <${Pace} pace=${pace} />
      <${Model} version=${version} disk=${disk} />
    </div>
    <section class="card" aria-label="The latest events">
      <h2>The latest events</h2>
      <${Events} events=${tail} />
    </section>`;
}

const POINTS = 64; // approximate number per curve: more would show the noise of single ratings

/** The series over fewer, larger groups: means weighted by ratings, and the standard error of a mean from those of its parts. */
export function merged(series) {
  const size = Math.max(1, Math.ceil(series.ratings.length / POINTS));
  const told = { ratings: [], reward: [], reward_error: [], calibration: [], optimism: [] };
  const groups = [];
  series.ratings.forEach((_, row) => (row % size ? groups.at(-1).push(row) : groups.push([row])));
  // The latest ratings wait for company: a mean of two or three would set the scale of the chart.
  const counted = (rows) => rows.reduce((sum, row) => sum + series.ratings[row], 0);
  if (groups.length > 1 && counted(groups.at(-1)) * 2 < counted(groups.at(-2))) groups.push(groups.splice(-2).flat());
  for (const rows of groups) {
    const mean = (name) => {
      const known = rows.filter((row) => series[name][row] !== null);
      const total = known.reduce((sum, row) => sum + series.ratings[row], 0);
      return total === 0 ? null : known.reduce((sum, row) => sum + series[name][row] * series.ratings[row], 0) / total;
    };
    const count = counted(rows);
    const reward = mean("reward");
    // within the parts, from their standard errors, and between them, from their means
    const squares = rows.reduce((sum, row) => sum + series.ratings[row] * ((series.ratings[row] - 1) * (series.reward_error[row] ?? 0) ** 2 + (series.reward[row] - reward) ** 2), 0);
    told.ratings.push(count);
    told.reward.push(reward);
    told.reward_error.push(count < 2 ? null : Math.sqrt(squares / (count * (count - 1))));
    told.calibration.push(mean("calibration"));
    told.optimism.push(mean("optimism"));
  }
  return told;
}

/** Curves over the number of ratings up to the end of each group. */
export function Histories({ series: given }) {
  if (given === null) return null;
  const series = merged(given);
  let done = 0;
  const x = series.ratings.map((count) => (done += count));
  const { reward, reward_error: error, calibration, optimism } = series;
  const shift = (sign) => reward.map((value, at) => (value === null ? null : value + sign * SURE * (error[at] ?? 0)));
  const lower = shift(-1);
  const upper = shift(1);
  const axis = { name: "ratings", title: "ratings", show: whole };
  const optimist = optimism.map((value) => (value === null || Math.abs(value) > 1e300 ? null : value));
  return html`
    <${Figure} id="live-reward" title="Reward" about="Mean rating over time, with the 95 % interval of the mean."
      columns=${[axis, { name: "mean", title: "mean rating" }, { name: "lower", title: "from" }, { name: "upper", title: "to" }]}
      rows=${x.map((at, row) => [at, reward[row], lower[row], upper[row]])}>
      <${Curves} x=${x} series=${[{ label: "reward", values: reward, lower, upper, colour: "mean" }]} label="Mean rating over the number of ratings"
        say=${(at) => html`after ${whole(x[at])} ratings: <strong>${number(reward[at])}</strong>${error[at] !== null && ` ± ${number(SURE * error[at])}`}`} />
    </${Figure}>
    <div class="pair">
      <${Figure} id="live-calibration" title="Calibration" about="Share of ratings inside mean ± bonus of their decision."
        columns=${[axis, { name: "calibration", title: "share inside", show: share }]} rows=${x.map((at, row) => [at, calibration[row]])}>
        <${Curves} x=${x} series=${[{ label: "calibration", values: calibration, colour: "good" }]} range=${[0, 1]} height=${160} label="Share of ratings inside mean ± bonus"
          say=${(at) => html`after ${whole(x[at])} ratings: <strong>${share(calibration[at])}</strong>`} />
      </${Figure}>
      <${Figure} id="live-optimism" title="Optimism gap" about="Mean of score − rating: how much the score exceeded the rating."
        columns=${[axis, { name: "optimism", title: "score − rating" }]} rows=${x.map((at, row) => [at, optimist[row]])}>
        <${Curves} x=${x} series=${[{ label: "optimism", values: optimist, colour: "bonus" }]} height=${160} label="Mean of score minus rating"
          say=${(at) => html`after ${whole(x[at])} ratings: <strong>${number(optimist[at])}</strong>`} />
      </${Figure}>
    </div>`;
}

function Pace({ pace }) {
  const x = pace.map((point) => point.at);
  const row = (name) => pace.map((point) => point[name]);
  return html`<${Figure} id="live-pace" title="Pace" about="Decisions and ratings per second, while this page is open."
    columns=${[{ name: "at", title: "at", show: clock, text: true }, { name: "decisions", title: "decisions/s" }, { name: "ratings", title: "ratings/s" }]}
    rows=${pace.map((point) => [point.at, point.decisions, point.ratings])}>
    <${Curves} x=${x} time=${true} height=${160} label="Decisions and ratings per second"
      series=${[{ label: "decisions", values: row("decisions"), colour: "mean" }, { label: "ratings", values: row("ratings"), colour: "good" }]}
      say=${(at) => html`<span class="swatch mean"></span>${number(pace[at].decisions, 1)} decisions/s <span class="swatch good"></span>${number(pace[at].ratings, 1)} ratings/s`} />
  </${Figure}>`;
}

function Model({ version, disk }) {
  return html`<section class="card" aria-label="Model and log">
    <h2>Model and log</h2>
    <dl class="list">
      <dt>Policy</dt><dd>${version?.policy ?? "–"}</dd>
      <dt>Head of the log</dt><dd>event ${whole(version?.seq)}</dd>
      <dt>Chain</dt><dd><code>${version?.chain.slice(0, 16) ?? "–"}</code></dd>
      <dt>Newest snapshot</dt><dd>${disk === null ? "–" : disk.snapshot_seq === 0 ? "none yet" : `event ${whole(disk.snapshot_seq)}`}</dd>
      <dt>Its state id</dt><dd><code>${disk?.state_id?.slice(0, 16) ?? "–"}</code></dd>
      <dt>Log on disk</dt><dd>${bytes(disk?.log_bytes)}</dd>
      <dt>Free on disk</dt><dd>${bytes(disk?.free_bytes)}</dd>
      <dt>Durability</dt><dd>${version?.durability ?? "–"}</dd>
    </dl>
  </section>`;
}

/** Rows of the log, with links to their users and decisions. */
export function Events({ events }) {
  const to = (view, name, value) => html`<a href=${`#/${view}?${new URLSearchParams({ [name]: value })}`}><${Name} of=${value} /></a>`;
  const several = events.some((event) => event.shard !== undefined && event.shard !== null);
  const columns = [
    ...(several ? [{ title: "shard", show: whole }] : []),
    { title: "event", show: whole },
    { title: "when", text: true, show: clock },
    { title: "what", text: true, show: ([kind, name]) => (name ? html`${kind}: <${Name} of=${name} />` : kind) },
    { title: "who", text: true, show: (value) => value && to("user", "user", value) },
    { title: "item", text: true, show: (value) => (Array.isArray(value) ? `${value.length} items` : value && html`<${Name} of=${value} />`) },
    { title: "rating", show: (value) => (value === null ? "" : number(value)) },
    { title: "expected", show: (value) => (value === null ? "" : number(value)) },
    { title: "decision", text: true, show: (value) => value && to("why", "id", value) },
  ];
  const rows = events.map((event) => [
    ...(several ? [event.shard ?? null] : []), event.seq, event.at ?? null, [event.kind, event.event], event.user ?? null, event.items?.length === 1 ? event.items[0] : event.items ?? event.item ?? null,
    event.rating ?? null, event.mean ?? null, event.decision_id ?? null,
  ]);
  return html`<${Table} caption="Events, newest first" columns=${columns} rows=${rows} hidden=${true} />`;
}
