// Request items as a shop would, rate them by a click, and see what changes.

import { fresh, may, post } from "../api.js";
import { Bar, Choose, Failure, Legend, Name, Needs, Notice, number, rangeOf, share, signed, steps, whole } from "../parts.js";
import { html, useEffect, useState } from "../vendor/vendor.js";

const SYLLABLES = ["al", "ba", "tro", "ka", "li", "mo", "ne", "ra", "su", "vi"];
const MOST_VIEWED = 1000;

const invented = () => Array.from({ length: 3 }, () => SYLLABLES[Math.floor(Math.random() * SYLLABLES.length)]).join("");

export const findUsers = async (text) => {
  const told = await post("/v1/users/list", { n: 10, ...(text ? { search: text } : {}) });
  return told.users.map((one) => one.user);
};

export const findItems = async (text) => {
  const told = await post("/v1/items/list", { n: 10, ...(text ? { search: text } : {}) });
  return told.items.map((one) => one.item);
};

export function Try({ query }) {
  return html`<h1 tabindex="-1">Try it</h1>
    <p class="lead">Ask for items, rate them, and ask again: the next answer has learned from your ratings.</p>
    <${Needs} scopes=${["recommend", "feedback"]}><${Shop} query=${query} /></${Needs}>`;
}

function Shop({ query }) {
  const [user, setUser] = useState(query.get("user") ?? "");
  const [n, setN] = useState(Number(query.get("n")) || 3);
  const [seen, setSeen] = useState(query.get("seen") ?? "none");
  const [named, setNamed] = useState(query.get("items") ?? "");
  const [decision, setDecision] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const candidates = named.split("\n").map((name) => name.trim()).filter(Boolean);
  async function ask(event) {
    event?.preventDefault();
    setBusy(true);
    const wanted = { user, n: String(n), seen, ...(candidates.length ? { items: candidates.join("\n") } : {}) };
    history.replaceState(null, "", `#/try?${new URLSearchParams(wanted)}`);
    try {
      const body = { user, n, exclude_seen: seen, explain: true, request_id: fresh(), ...(candidates.length ? { candidates } : {}) };
      setDecision(await post("/v1/recommend", body));
      setError(null);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  }
  useEffect(() => {
    if (query.get("user")) ask();
  }, []);
  return html`
    <form class="card ask" onSubmit=${ask}>
      <div class="fields">
        <${Choose} id="try-who" testid="try-user" label="User" value=${user} onChange=${setUser} find=${may("read") ? findUsers : async () => []} hint="A known user, or a new one." />
        <label class="field narrow"><span>Items</span><input type="number" min="1" max="100" required value=${n} onInput=${(event) => setN(Number(event.target.value))} /></label>
        <label class="field"><span>Leave out</span>
          <select value=${seen} onChange=${(event) => setSeen(event.target.value)}>
            <option value="none">nothing</option><option value="rated">what they rated</option><option value="pending">what they rated or were shown</option>
          </select>
        </label>
      </div>
      <details open=${named !== ""}>
        <summary>Choose among certain items, or name new ones</summary>
        <label class="field"><span>Candidates, one per line; empty: the whole catalogue</span>
          <textarea rows="3" dir="auto" data-testid="try-candidates" value=${named} onInput=${(event) => setNamed(event.target.value)}></textarea>
        </label>
      </details>
      <div class="row">
        <button class="primary" data-testid="try-ask" disabled=${busy}>${decision === null ? "Ask" : "Ask again"}</button>
        <button type="button" class="quiet" onClick=${() => setUser(invented())}>Invent a user</button>
      </div>
    </form>
    <${Failure} error=${error} />
    ${error?.code === "no-eligible-candidate" && html`<${Notice}>Name some candidates above: unknown ones become items.</${Notice}>`}
    ${decision && html`<${Shown} key=${decision.decision_id} decision=${decision} />`}`;
}

/** One decision. After a rating, the new prediction is shown beside the old one. */
function Shown({ decision }) {
  const [now, setNow] = useState(null); // mean and score by item, after the last rating
  const [learned, setLearned] = useState(decision.model_seq);
  const reasons = decision.explanation;
  const close = reasons?.close ?? [];
  const range = rangeOf([...decision.items, ...close, ...(now ? [...now.values()].filter((one) => decision.items.some((shown) => shown.item === one.item)) : [])]);
  async function rated(accepted) {
    setLearned(accepted.model_seq);
    if (!may("read")) return;
    const view = await post("/v1/users/get", { user: decision.user, n: MOST_VIEWED });
    setNow(new Map(view.top.map((one) => [one.item, one])));
  }
  return html`<section aria-label="What was shown">
    <p class="decided">
      Decision ${may("read") ? html`<a href=${`#/why?${new URLSearchParams({ id: decision.decision_id })}`} data-testid="try-decision">${decision.decision_id}</a>` : decision.decision_id}
      ${" "}for <${Name} of=${decision.user} />, who has ${whole(decision.user_ratings)} ratings.
      ${" "}Model at event <strong data-testid="try-model-seq">${learned}</strong>.
    </p>
    ${reasons && html`<${Legend} before=${now !== null} />`}
    <ol class="shown">
      ${decision.items.map((shown, at) => html`<${Item} key=${shown.item} decision=${decision} shown=${shown} reason=${reasons?.items[at]} now=${now?.get(shown.item) ?? null} range=${range} onRated=${rated} />`)}
    </ol>
    ${close.length > 0 && html`<h2>Next best, not shown</h2>
      <ol class="ranked">${close.map((one) => html`<li key=${one.item}><${Name} of=${one.item} /><${Bar} ...${one} range=${range} /><span class="number">${number(one.score)}</span></li>`)}</ol>`}
  </section>`;
}

function Item({ decision, shown, reason, now, range, onRated }) {
  const [given, setGiven] = useState(null);
  const [error, setError] = useState(null);
  const [event] = useState(fresh); // the same id for every retry
  async function rate(rating) {
    setError(null);
    try {
      const accepted = await post("/v1/feedback", { event_id: event, decision_id: decision.decision_id, item: shown.item, rating });
      setGiven(rating);
      await onRated(accepted);
    } catch (problem) {
      setError(problem);
    }
  }
  const current = now ?? shown;
  const predicted = reason !== undefined; // only a fallback has no explanation
  return html`<li class="card" data-testid="try-item">
    <div class="row">
      <h2><${Name} of=${shown.item} /></h2>
      ${reason?.explored && html`<span class="chip">chosen at random</span>`}
    </div>
    ${predicted ? html`<${Bar} mean=${current.mean} score=${current.score} range=${range} before=${now ? shown.score : null} rating=${given} />
    <p class="sum" data-testid="try-sum">
      mean <strong>${number(current.mean)}</strong> + bonus <strong>${number(current.score - current.mean)}</strong> = score <strong>${number(current.score)}</strong>
      ${now && Math.abs(shown.score) < 1e300 && html`<span class="change" data-testid="try-change">mean ${signed(now.mean - shown.mean)}, bonus ${signed(now.score - now.mean - (shown.score - shown.mean))}</span>`}
    </p>` : html`<p class="sum">A fallback for users without ratings: the policy predicted nothing.</p>`}
    <p class="about">
      propensity ${shown.propensity === null ? "unknown" : share(shown.propensity)}${reason && html` · rated ${whole(reason.item_ratings)} times, ${whole(reason.own_ratings)} by this user`}${reason?.width !== null && reason?.width !== undefined && html` · width ${number(reason.width)}, after one more rating ${number(reason.width_after)}`}
    </p>
    <div class="row" role="group" aria-label=${`Rate ${shown.item}`}>
      ${steps().map((value) => html`<button type="button" class=${given === value ? "rate given" : "rate"} data-testid=${`try-rate-${value}`} disabled=${given !== null} aria-label=${`Rate ${number(value, Number.isInteger(value) ? 0 : 2)}`} onClick=${() => rate(value)}>${number(value, Number.isInteger(value) ? 0 : 2)}</button>`)}
      <span role="status">${given !== null && html`<span class="good">learned</span>`}</span>
    </div>
    <${Failure} error=${error} />
  </li>`;
}
