// "If ann rated X with 5": the best items before and after. Nothing is learned.

import { post, scale } from "../api.js";
import { Choose, Failure, Needs, Notice, number, useAnswer } from "../parts.js";
import { html, useState } from "../vendor/vendor.js";
import { findItems, findUsers } from "./try.js";
import { Best } from "./user.js";

export function WhatIf({ query }) {
  return html`<h1 tabindex="-1">What if</h1>
    <p class="lead">What a user would be shown after one more rating. Nothing is learned or written.</p>
    <${Needs} scopes=${["read"]}><${Ask} query=${query} /></${Needs}>`;
}

function Ask({ query }) {
  const [user, setUser] = useState(query.get("user") ?? "");
  const [item, setItem] = useState(query.get("item") ?? "");
  const [rating, setRating] = useState(query.get("rating") ?? String(scale.value[1]));
  const wanted = ["user", "item", "rating"].every((name) => query.get(name));
  function ask(event) {
    event.preventDefault();
    location.hash = `/whatif?${new URLSearchParams({ user, item, rating })}`;
  }
  return html`
    <form class="card ask" onSubmit=${ask}>
      <div class="row">
        <${Choose} id="whatif-who" testid="whatif-user" label="If" value=${user} onChange=${setUser} find=${findUsers} />
        <${Choose} id="whatif-what" testid="whatif-item" label="rated" value=${item} onChange=${setItem} find=${findItems} />
        <label class="field narrow"><span>with</span><input type="number" step="any" min=${scale.value[0]} max=${scale.value[1]} required data-testid="whatif-rating" value=${rating} onInput=${(event) => setRating(event.target.value)} /></label>
        <button class="primary" data-testid="whatif-ask">Suppose</button>
      </div>
    </form>
    ${wanted && html`<${Supposed} user=${query.get("user")} item=${query.get("item")} rating=${Number(query.get("rating"))} />`}`;
}

function Supposed({ user, item, rating }) {
  const { answer, error } = useAnswer((abort) => post("/v1/users/suppose", { user, item, rating, n: 10 }, abort), [user, item, rating]);
  if (answer === null) return html`<${Failure} error=${error} />`;
  return html`
    <div class="pair">
      <${Best} id="whatif-before" title="Before" about=${`The ten best for ${user} now.`} top=${answer.before} />
      <${Best} id="whatif-after" title="After" about=${`If ${user} rated ${item} with ${number(rating, Number.isInteger(rating) ? 0 : 2)}.`} top=${answer.after} others=${answer.before} />
    </div>
    <${Notice}>Nothing was learned: the model is still at event ${answer.model_seq}${answer.state_id && html`, state <code data-testid="whatif-state">${answer.state_id}</code>`}.</${Notice}>`;
}
