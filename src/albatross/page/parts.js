// What every view is made of: numbers as text, tables, figures with their data, bars from mean to score.

import { access, may, returns, scale } from "./api.js";
import { html, useEffect, useRef, useState } from "./vendor/vendor.js";

export const BOUNDLESS = 1e300; // a score as large as this says "try it once", not how good it is

export function number(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Math.abs(value) >= BOUNDLESS) return "∞";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 10 ** -digits / 2)) return value.toExponential(1);
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export const whole = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));
export const share = (value) => (value === null || value === undefined ? "–" : `${number(100 * value, 1)} %`);
export const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : "±"}${number(Math.abs(value))}`;
export const clock = (at) => (at === null || at === undefined ? "–" : new Date(1000 * at).toLocaleString("en-GB", { hour12: false }));

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let size = value;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (size < 1000) return `${number(size, unit === "B" ? 0 : 1)} ${unit}`;
    size /= 1000;
  }
  return `${number(size, 1)} TB`;
}

/** Ask for something whenever `wanted` changes; only the last answer counts. */
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

/** Text from outside, set apart from the text of the page whatever direction it is written in. */
export const Name = ({ of }) => html`<bdi class="name" title=${of}>${of}</bdi>`;

export const Notice = ({ kind = "note", children }) => html`<p class=${`notice ${kind}`} role=${kind === "error" ? "alert" : "status"}>${children}</p>`;

export const Failure = ({ error }) => error && html`<${Notice} kind="error">${error.message}</${Notice}>`;

/** What is shown in place of a view that the key does not allow. */
export function Needs({ scopes, children }) {
  const missing = scopes.filter((scope) => !may(scope));
  if (missing.length === 0) return children;
  const has = access.value?.scopes.join(", ") || "nothing";
  return html`<${Notice}>This needs a key with the scope ${missing.join(" and ")}. The key in use allows ${has}.</${Notice}>`;
}

export function Table({ caption, columns, rows, hidden = false }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption class=${hidden ? "unseen" : ""}>${caption}</caption>
      <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.text ? "" : "number"}>${column.title}</th>`)}</tr></thead>
      <tbody>
        ${rows.map((row) => html`<tr>${columns.map((column, at) => html`<td class=${column.text ? "" : "number"}>${column.show ? column.show(row[at]) : number(row[at])}</td>`)}</tr>`)}
      </tbody>
    </table>
  </div>`;
}

const quoted = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

function download(name, kind, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const MOST_ROWS = 512; // of the table behind a figure; the files have all of them

/** A figure with the table behind it, as JSON and CSV too. `columns`: {name, title, show, text}; `rows`: arrays of plain values. */
export function Figure({ id, title, about, columns, rows, children }) {
  const records = () => rows.map((row) => Object.fromEntries(columns.map((column, at) => [column.name, row[at] ?? null])));
  const csv = () => [columns.map((column) => column.name), ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
  const file = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return html`<figure class="card" data-testid=${id} aria-label=${title}>
    <figcaption>
      <h2>${title}</h2>
      ${about && html`<p class="about">${about}</p>`}
    </figcaption>
    ${children}
    <div class="behind">
      <details>
        <summary>Table<span class="unseen"> of ${title}</span></summary>
        <${Table} caption=${title} columns=${columns} rows=${rows.slice(-MOST_ROWS)} hidden=${true} />
        ${rows.length > MOST_ROWS && html`<p class="about">The last ${MOST_ROWS} of ${whole(rows.length)} rows; the files have all.</p>`}
      </details>
      <span class="tools">
        <button type="button" class="quiet" onClick=${() => download(`${file}.csv`, "text/csv", csv())}>CSV<span class="unseen"> of ${title}</span></button>
        <button type="button" class="quiet" onClick=${() => download(`${file}.json`, "application/json", JSON.stringify(records(), null, 1))}>JSON<span class="unseen"> of ${title}</span></button>
      </span>
    </div>
  </figure>`;
}

/** The range that bars are drawn over: the scale, and what goes beyond it. */
export function rangeOf(shown) {
  const [low, high] = scale.value;
  const finite = shown.flatMap((one) => [one.mean, one.score]).filter((value) => Math.abs(value) < BOUNDLESS);
  return [Math.min(low, ...finite), Math.max(high, ...finite)];
}

/** Mean and bonus as one bar up to the score. `before`: where the score was; `rating`: what came. */
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

/** A text field that offers what the service knows. `find(text)` gives a list of names. */
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

/** The ratings a click can give: the whole numbers of the scale, or five steps along it. */
export function steps() {
  const [low, high] = scale.value;
  if (Number.isInteger(low) && Number.isInteger(high) && high - low <= 10) {
    return Array.from({ length: high - low + 1 }, (_, at) => low + at);
  }
  return Array.from({ length: 5 }, (_, at) => low + ((high - low) * at) / 4);
}
