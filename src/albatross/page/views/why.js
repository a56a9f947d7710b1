// One decision: the items shown, the next best ones, the predictions and the ratings.

import { post } from "../api.js";
import { Bar, Failure, Figure, Legend, Name, Needs, clock, number, plain, rangeOf, share, signed, useAnswer, whole } from "../parts.js";
import { rules } from "../rules.js";
import { html, useState } from "../vendor/vendor.js";

export function Why({ query }) {
  return html`<h1 tabindex="-1">Why</h1>
    <p class="lead">Any decision by its id: the items shown, the next best ones, the predictions and the ratings.</p>
    <${Needs} scopes=${["read"]}><${Search} query=${query} /></${Needs}>`;
}

function Search({ query }) {
  const id = query.get("id") ?? "";
  const [given, setGiven] = useState(id);
  const latest = useAnswer((abort) => post("/v1/events/list", { n: 200 }, abort), []);
  const decisions = (latest.answer?.events ?? []).filter((event) => event.kind === "decision").slice(0, 8);
  return html`
    <form class="card ask" onSubmit=${(event) => { event.preventDefault(); location.hash = `/why?${new URLSearchParams({ id: given.trim() })}`; }}>
      <div class="row">
        <label class="field grow"><span>Decision id</span><input data-testid="why-id" value=${given} required maxlength="256" autocomplete="off" spellcheck=${false} onInput=${(event) => setGiven(event.target.value)} /></label>
        <button class="primary">Explain</button>
      </div>
      ${decisions.length > 0 && html`<p class="about">The latest: ${decisions.map((event, at) => html`${at > 0 && " · "}<a href=${`#/why?${new URLSearchParams({ id: event.decision_id })}`}>${event.decision_id}</a>`)}</p>`}
    </form>
    ${id && html`<${Explained} key=${id} id=${id} />`}`;
}

const VALUE = {
  popular: { title: "Ranked by popularity", name: "popularity", say: number },
  new: { title: "Ranked by age, newest first", name: "added as item", say: (value) => plain(value + 1) },
};

function Explained({ id }) {
  const { answer, error } = useAnswer((abort) => post("/v1/decisions/get", { decision_id: id }, abort), [id]);
  if (answer === null) return html`<${Failure} error=${error} />`;
  const fallback = VALUE[answer.by]; // undefined: the policy ranked the items
  const range = rangeOf([...answer.items, ...answer.close]);
  const widths = new Map((answer.explanation?.items ?? []).map((one) => [one.item, one]));
  const demanded = rules(answer);
  const named = answer.items.some((one) => one.event);
  const values = fallback ? [{ name: answer.by, title: fallback.name, show: fallback.say }] : [{ name: "mean", title: "mean" }, { name: "bonus", title: "bonus" }, { name: "score", title: "score" }];
  const columns = [
    { name: "item", title: "item", text: true, show: (value) => html`<${Name} of=${value} />` },
    { name: "shown_at", title: "place", show: (value) => value ?? "not shown" },
    ...values,
    { name: "propensity", title: "propensity", show: share },
    { name: "explored", title: "explored", text: true, show: (value) => (value ? "yes" : "") },
    { name: "rating", title: "rating" },
    ...(named ? [{ name: "event", title: "named", text: true, show: (value) => value && html`<${Name} of=${value} />` }] : []),
  ];
  const row = (one, place, ...rest) => [one.item, place, ...(fallback ? [one.score] : [one.mean, one.bonus, one.score]), ...rest];
  const rows = [
    ...answer.items.map((one) => row(one, one.rank, one.propensity, one.explored, one.rating, ...(named ? [one.event] : []))),
    ...answer.close.map((one) => row(one, null, null, false, null, ...(named ? [null] : []))),
  ];
  const from = answer.candidates !== null ? `${whole(answer.candidates)} candidates` : demanded.length > 0 ? "the catalogue" : "the whole catalogue";
  const first = fallback ? "The first in rank" : "The item with the best score";
  return html`
    <p class="decided">
      ${clock(answer.at)} · for <a href=${`#/user?${new URLSearchParams({ user: answer.user })}`}><${Name} of=${answer.user} /></a>, who had ${whole(answer.user_ratings)} ratings ·
      ${" "}${fallback ? `a fallback instead of ${answer.policy}, with` : `${answer.policy}, which had learned`} every event up to <strong>${whole(answer.model_seq)}</strong> ·
      ${" "}${from}${demanded.length > 0 && ", under these rules:"}
    </p>
    ${demanded.length > 0 && html`<ul class="rules" data-testid="why-rules">${demanded.map((rule) => html`<li>${rule}</li>`)}</ul>`}
    <${Figure} id="why-items" title=${fallback ? fallback.title : "Mean + bonus = score"} about=${`${first}${demanded.length > 0 ? ", of those that the rules leave," : ""} is shown, except for a share chosen at random.`} columns=${columns} rows=${rows}>
      ${!fallback && html`<${Legend} rating=${answer.items.some((one) => one.rating !== null)} />`}
      <ol class="shown">
        ${answer.items.map((one) => html`<li key=${one.item} data-testid="why-item">
          <div class="row"><h3><${Name} of=${one.item} /></h3>${one.explored && html`<span class="chip">chosen at random</span>`}</div>
          ${fallback
            ? html`<p class="sum">${fallback.name} <strong>${fallback.say(one.score)}</strong></p>`
            : html`<${Bar} ...${one} range=${range} />
              <p class="sum">mean <strong>${number(one.mean)}</strong> + bonus <strong>${number(one.bonus)}</strong> = score <strong>${number(one.score)}</strong></p>`}
          <p class="about">
            propensity ${one.propensity === null ? "unknown" : share(one.propensity)} · rated ${whole(one.item_ratings)} times by now${widths.has(one.item) && widths.get(one.item).width !== null && ` · width ${number(widths.get(one.item).width)}`}
          </p>
          <p class="came-of" data-testid="why-came"><${Came} of=${one} predicted=${!fallback} /></p>
        </li>`)}
      </ol>
      ${answer.close.length > 0 && html`
        <h3>Next best items</h3>
        <p class="about">${fallback ? `Ranked at event ${whole(answer.close_seq)}.` : answer.close_seq === answer.model_seq ? "By the model of the decision." : `By the model at event ${whole(answer.close_seq)}, because the request had no explain.`}</p>
        <ol class="ranked" data-testid="why-close">${answer.close.map((one) => html`<li key=${one.item}><${Name} of=${one.item} />${fallback ? html`<span></span>` : html`<${Bar} ...${one} range=${range} />`}<span class="number">${fallback ? fallback.say(one.score) : number(one.score)}</span></li>`)}</ol>`}
    </${Figure}>
    ${answer.items.map((one) => one.because && html`<${Reasons} key=${one.item} item=${one.item} because=${one.because} />`)}
    ${answer.items.every((one) => one.because === null) && html`<section class="card" data-testid="why-because" aria-label="Because"><h2>Because</h2>
      <p class="about">No reasons: ${fallback ? "the policy did not rank these items." : "the user has no ratings, or this policy's mean is not a sum over the user's ratings."}</p></section>`}`;
}

/** What came of an item: the last event or the rating, beside the prediction if there was one. */
function Came({ of, predicted }) {
  if (of.rating === null) return "No rating yet.";
  const reward = html`<strong>${number(of.rating)}</strong>${predicted && ` (${signed(of.rating - of.mean)})`}, event ${whole(of.rated_seq)}.`;
  const before = predicted && `Predicted ${number(of.mean)}, `;
  return of.event ? html`${before}<${Name} of=${of.event} /> counted as ${reward}` : html`${before}${predicted ? "rated" : "Rated"} ${reward}`;
}

/** Contributions of the user's own ratings for and against the item. Together with the prediction without them, they sum to the mean. */
function Reasons({ item, because }) {
  const parts = [...because.ratings.map((one) => [one.item, one.rating, one.part]), ...(because.others === 0 ? [] : [["all others", null, because.others]])];
  const most = Math.max(1e-12, ...parts.map(([, , part]) => Math.abs(part)));
  return html`<${Figure} id="why-because" title=${`Because: ${item}`} about=${`Predicted now: ${number(because.mean)}. Without this user's ratings it would be ${number(because.base)}; each of them adds its part.`}
    columns=${[{ name: "item", title: "rated", text: true, show: (value) => html`<${Name} of=${value} />` }, { name: "rating", title: "rating" }, { name: "part", title: "adds", show: (value) => number(value, 4) }]}
    rows=${[["(without their ratings)", null, because.base], ...parts]}>
    <ol class="parts">${parts.map(([name, rating, part]) => html`<li key=${name}>
      <span><${Name} of=${name} />${rating !== null && html`<small> rated ${number(rating, Number.isInteger(rating) ? 0 : 2)}</small>`}</span>
      <span class="part" role="img" aria-label=${`${part < 0 ? "against" : "for"}: ${signed(part)}`}><i class=${part < 0 ? "against" : "for"} style=${{ width: `${(50 * Math.abs(part)) / most}%` }}></i></span>
      <span class="number">${signed(part, Math.abs(part) < 0.005 ? 4 : 2)}</span>
    </li>`)}</ol>
    <p class="sum" data-testid="why-sum"><strong>${number(because.base)}</strong> ${because.mean < because.base ? "−" : "+"} <strong>${number(Math.abs(because.mean - because.base))}</strong> = mean <strong>${number(because.mean)}</strong></p>
  </${Figure}>`;
}
