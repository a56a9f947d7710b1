// Text from outside, tables, and figures with their data, for the page and the reports. Nothing here sends a request.

import { number, whole } from "./numbers.js";
import { html, useState } from "./vendor/vendor.js";

/** Text from outside, isolated from the text of the page, whatever its direction. */
export const Name = ({ of }) => html`<bdi class="name" title=${of}>${of}</bdi>`;

export const Notice = ({ kind = "note", children }) => html`<p class=${`notice ${kind}`} role=${kind === "error" ? "alert" : "status"}>${children}</p>`;

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
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

function download(name, kind, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const MOST_ROWS = 512; // limit of the table of a figure; the files have all rows

/** A figure with its table, also as JSON and CSV. `columns`: {name, title, show, text}; `rows`: arrays of plain values. */
export function Figure({ id, title, about, columns, rows, children }) {
  const [opened, setOpened] = useState(false); // a closed table is not rendered
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
      <details onToggle=${(event) => setOpened(event.target.open)}>
        <summary>Table<span class="unseen"> of ${title}</span></summary>
        ${opened && html`<${Table} caption=${title} columns=${columns} rows=${rows.slice(-MOST_ROWS)} hidden=${true} />`}
        ${rows.length > MOST_ROWS && html`<p class="about">The last ${MOST_ROWS} of ${whole(rows.length)} rows; the files have all.</p>`}
      </details>
      <span class="tools">
        <button type="button" class="quiet" onClick=${() => download(`${file}.csv`, "text/csv", csv())}>CSV<span class="unseen"> of ${title}</span></button>
        <button type="button" class="quiet" onClick=${() => download(`${file}.json`, "application/json", JSON.stringify(records(), null, 1))}>JSON<span class="unseen"> of ${title}</span></button>
      </span>
    </div>
  </figure>`;
}
