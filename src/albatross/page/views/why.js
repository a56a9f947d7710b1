// One decision: the items shown, the next best ones, the predictions and the ratings.

import { post } from "../api.js";
import { Bar, Failure, Figure, Legend, Name, Needs, clock, number, rangeOf, share, signed, useAnswer, whole } from "../parts.js";
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

function Explained({ id }) {
  const { answer, error } = useAnswer((abort) => post("/v1/decisions/get", { decision_id: id }, abort), [id]);
  if (answer === null) return html`<${Failure} error=${error} />`;
  const range = rangeOf([...answer.items, ...answer.close]);
  const widths = new Map((answer.explanation?.items ?? []).map((one) => [one.item, one]));
  const columns = [
    { name: "item", title: "item", text: true, show: (value) => html`<${Name} of=${value} />` },
    { name: "shown_at", title: "place", show: (value) => value ?? "not shown" },
    { name: "mean", title: "mean" }, { name: "bonus", title: "bonus" }, { name: "score", title: "score" },
    { name: "propensity", title: "propensity", show: share },
    { name: "explored", title: "explored", text: true, show: (value) => (value ? "yes" : "") },
    { name: "rating", title: "rating" },
  ];
  const rows = [
    ...answer.items.map((one) => [one.item, one.rank, one.mean, one.bonus, one.score, one.propensity, one.explored, one.rating]),
    ...answer.close.map((one) => [one.item, null, one.mean, one.bonus, one.score, null, false, null]),
  ];
  return html`
    <p class="decided">
      ${clock(answer.at)} · for <a href=${`#/user?${new URLSearchParams({ user: answer.user })}`}><${Name} of=${answer.user} /></a>, who had ${whole(answer.user_ratings)} ratings ·
      ${" "}${answer.policy}, which had learned every event up to <strong>${whole(answer.model_seq)}</strong> ·
      ${" "}${answer.candidates === null ? "the whole catalogue" : `${whole(answer.candidates)} candidates`}
    </p>
    <${Figure} id="why-items" title="Mean + bonus = score" about="The item with the best score is shown, except for a share chosen at random." columns=${columns} rows=${rows}>
      <${Legend} rating=${answer.items.some((one) => one.rating !== null)} />
      <ol class="shown">
        ${answer.items.map((one) => html`<li key=${one.item} data-testid="why-item">
          <div class="row"><h3><${Name} of=${one.item} /></h3>${one.explored && html`<span class="chip">chosen at random</span>`}</div>
          <${Bar} ...${one} range=${range} />
          <p class="sum">mean <strong>${number(one.mean)}</strong> + bonus <strong>${number(one.bonus)}</strong> = score <strong>${number(one.score)}</strong></p>
          <p class="about">
            propensity ${one.propensity === null ? "unknown" : share(one.propensity)} · rated ${whole(one.item_ratings)} times by now${widths.has(one.item) && widths.get(one.item).width !== null && ` · width ${number(widths.get(one.item).width)}`}
          </p>
          <p class="came-of" data-testid="why-came">${one.rating === null ? "No rating yet." : html`Predicted ${number(one.mean)}, rated <strong>${number(one.rating)}</strong> (${signed(one.rating - one.mean)}), event ${whole(one.rated_seq)}.`}</p>
        </li>`)}
      </ol>
      ${answer.close.length > 0 && html`
        <h3>Next best items</h3>
        <p class="about">${answer.close_seq === answer.model_seq ? "By the model of the decision." : `By the model at event ${whole(answer.close_seq)}, because the request had no explain.`}</p>
        <ol class="ranked" data-testid="why-close">${answer.close.map((one) => html`<li key=${one.item}><${Name} of=${one.item} /><${Bar} ...${one} range=${range} /><span class="number">${number(one.score)}</span></li>`)}</ol>`}
    </${Figure}>
    ${answer.items.map((one) => one.because && html`<${Reasons} key=${one.item} item=${one.item} because=${one.because} />`)}
    ${answer.items.every((one) => one.because === null) && html`<section class="card" data-testid="why-because" aria-label="Because"><h2>Because</h2>
      <p class="about">No reasons: the user has no ratings, or this policy's mean is not a sum over the user's ratings.</p></section>`}`;
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
