// Parts of all views: answers, bars from mean to score, fields with suggestions; and everything that reports use.

import { access, may, returns, scale } from "./api.js";
import { Notice } from "./figures.js";
import { BOUNDLESS, number } from "./numbers.js";
import { html, useEffect, useRef, useState } from "./vendor/vendor.js";

export { Figure, Name, Notice, Table } from "./figures.js";
export { BOUNDLESS, bytes, clock, number, plain, share, signed, whole } from "./numbers.js";

/** Send a request whenever `wanted` changes; only the last answer counts. */
export function useAnswer(ask, wanted) {
  const [state, setState] = useState({ answer: null, error: null, busy: true });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, busy: true }));
    Promise.resolve()
      .then(() => ask(abort.signal))
      .then((answer) => !abort.signal.aborted && setState({ answer, error: null, busy: false }))
      .catch((error) => !abort.signal.aborted && setState({ answer: null, error, busy: false }));
    return () => abort.abort();
  }, [...wanted, again, state.error?.status === 0 ? returns.value : 0]);
  return { ...state, reload: () => setAgain((count) => count + 1) };
}

export const Failure = ({ error }) => error && html`<${Notice} kind="error">${error.message}</${Notice}>`;

/** Shown instead of a view that the key does not allow. */
export function Needs({ scopes, children }) {
  const missing = scopes.filter((scope) => !may(scope));
  if (missing.length === 0) return children;
  const has = access.value?.scopes.join(", ") || "nothing";
  return html`<${Notice}>This needs a key with the scope ${missing.join(" and ")}. The key in use allows ${has}.</${Notice}>`;
}

/** The range of the bars: the scale, extended to values beyond it. */
export function rangeOf(shown) {
  const [low, high] = scale.value;
  const finite = shown.flatMap((one) => [one.mean, one.score]).filter((value) => Math.abs(value) < BOUNDLESS);
  return [Math.min(low, ...finite), Math.max(high, ...finite)];
}

/** Mean and bonus as one bar up to the score. `before`: the old score; `rating`: the rating received. */
export function Bar({ mean, score, range, before = null, rating = null }) {
  const [low, high] = range;
  const place = (value) => Math.max(0, Math.min(100, (100 * (value - low)) / (high - low || 1)));
  const boundless = Math.abs(score) >= BOUNDLESS;
  const to = boundless ? 100 : place(score);
  const from = place(mean);
  const said = `mean ${number(mean)}, bonus ${boundless ? "without bound" : number(score - mean)}, score ${number(score)}`;
  return html`<div class="bar" role="img" aria-label=${said + (rating === null ? "" : `, rated ${number(rating)}`)}>
    <div class="mean" style=${{ width: `${Math.min(from, to)}%` }}></div>
    <div class="bonus" style=${{ left: `${Math.min(from, to)}%`, width: `${Math.abs(to - from)}%` }}></div>
    ${before !== null && Math.abs(before) < BOUNDLESS && html`<div class="before" style=${{ left: `${place(before)}%` }}></div>`}
    ${rating !== null && html`<div class="came" style=${{ left: `${place(rating)}%` }}></div>`}
  </div>`;
}

export const Legend = ({ before, rating }) => html`<p class="legend" aria-hidden="true">
  <span class="swatch mean"></span>mean <span class="swatch bonus"></span>bonus, up to the score
  ${before && html`<span class="swatch before"></span>score before`}${rating && html`<span class="swatch came"></span>rating`}
</p>`;

/** A text field with suggestions from the service. `find(text)` gives a list of names. */
export function Choose({ id, label, value, onChange, find, testid, hint }) {
  const [offered, setOffered] = useState([]);
  const asked = useRef(0);
  async function offer(text) {
    onChange(text);
    const mine = ++asked.current;
    try {
      const names = await find(text);
      if (mine === asked.current) setOffered(names);
    } catch {
      setOffered([]);
    }
  }
  return html`<label class="field">
    <span>${label}</span>
    <input id=${id} data-testid=${testid} value=${value} maxlength="256" autocomplete="off" spellcheck=${false} dir="auto" list=${`${id}-offered`}
      required onInput=${(event) => offer(event.target.value)} onFocus=${() => offer(value)} />
    <datalist id=${`${id}-offered`}>${offered.map((name) => html`<option value=${name}></option>`)}</datalist>
    ${hint && html`<small>${hint}</small>`}
  </label>`;
}

/** The ratings offered as buttons: the whole numbers of the scale, or five even steps. */
export function steps() {
  const [low, high] = scale.value;
  if (Number.isInteger(low) && Number.isInteger(high) && high - low <= 10) {
    return Array.from({ length: high - low + 1 }, (_, at) => low + at);
  }
  return Array.from({ length: 5 }, (_, at) => low + ((high - low) * at) / 4);
}
