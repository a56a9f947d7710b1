// The frame around the views: navigation, the key, and whether the service answers.

import { access, dropKey, enter, key, locked, may, reachable, refusal, useKey } from "./api.js";
import { Notice } from "./parts.js";
import { html, render, signal, useEffect, useRef, useState } from "./vendor/vendor.js";
import { Arena } from "./views/arena.js";
import { Items } from "./views/items.js";
import { Live } from "./views/live.js";
import { Log } from "./views/log.js";
import { Try } from "./views/try.js";
import { User } from "./views/user.js";
import { WhatIf } from "./views/whatif.js";
import { Why } from "./views/why.js";

const STAGED = document.documentElement.dataset.serves === "arena"; // a simulation in place of a recommender
if (STAGED) access.value = { key_needed: false, scopes: ["read"], key: null, expires: null };

const VIEWS = STAGED ? [["arena", "Arena", Arena]] : [
  ["live", "Live", Live],
  ["try", "Try it", Try],
  ["why", "Why", Why],
  ["user", "User", User],
  ["items", "Items", Items],
  ["whatif", "What if", WhatIf],
  ["log", "Log", Log],
];

const place = signal(read());
addEventListener("hashchange", () => (place.value = read()));

function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const view = VIEWS.find(([name]) => name === path) ?? VIEWS[0];
  return { view, query: new URLSearchParams(query ?? "") };
}

/** Asks for a key, which is kept until the tab is closed. */
function Door() {
  const [given, setGiven] = useState("");
  const [busy, setBusy] = useState(false);
  async function open(event) {
    event.preventDefault();
    setBusy(true);
    await useKey(given.trim());
    setBusy(false);
  }
  return html`<main id="view" class="door">
    <form class="card" onSubmit=${open}>
      <h1>This service needs a key</h1>
      <p class="about">It is kept in this tab until you close it. The operator of the service makes one with <code>albatross keys create</code>.</p>
      <label class="field"><span>Key</span>
        <input type="password" data-testid="key" value=${given} autocomplete="off" required onInput=${(event) => setGiven(event.target.value)} />
      </label>
      ${refusal.value && html`<${Notice} kind="error">${refusal.value}</${Notice}>`}
      <button class="primary" data-testid="key-use" disabled=${busy}>Use this key</button>
    </form>
  </main>`;
}

function Head() {
  const { view } = place.value;
  const told = access.value;
  return html`<header>
    <a class="skip" href="#view" onClick=${(event) => { event.preventDefault(); document.querySelector("#view h1")?.focus(); }}>Skip to the view</a>
    <div class="top">
      <a class="brand" href=${`#/${VIEWS[0][0]}`}>albatross</a>
      <nav aria-label="Views">
        ${VIEWS.map(([name, title]) => html`<a href=${`#/${name}`} aria-current=${name === view[0] ? "page" : undefined}>${title}</a>`)}
      </nav>
      ${told?.key_needed && told.key && html`<div class="key" data-testid="scopes">
        <span class="about">key ${told.key}</span>
        ${["recommend", "feedback", "read", "admin"].map((scope) => html`<span class=${may(scope) ? "chip" : "chip off"}>${scope}<span class="unseen">${may(scope) ? " allowed" : " not allowed"}</span></span>`)}
        <button type="button" class="quiet" onClick=${dropKey}>Forget key</button>
      </div>`}
    </div>
    <div role="status">${!reachable.value && html`<p class="away" data-testid="away">The service does not answer. The page retries automatically.</p>`}</div>
  </header>`;
}

function Page() {
  const { view, query } = place.value;
  const [name, title, View] = view;
  const main = useRef(null);
  useEffect(() => {
    document.title = `${title} · albatross`;
    document.querySelector("nav a[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
    if (document.activeElement?.closest("nav")) main.current?.querySelector("h1")?.focus({ preventScroll: true });
  }, [name]);
  useEffect(() => {
    if (STAGED) return undefined;
    let timer = 0;
    const knock = () => enter().catch((error) => {
      if (error.status !== 401) timer = setTimeout(knock, 1000);
    });
    knock();
    return () => clearTimeout(timer);
  }, []);
  if (locked.value) return html`<${Head} /><${Door} />`;
  if (access.value === null) return html`<${Head} /><main id="view"><h1 class="unseen" tabindex="-1">${title}</h1></main>`;
  return html`<${Head} /><main id="view" ref=${main} key=${`${name} ${key.value}`}><${View} query=${query} /></main>`;
}

render(html`<${Page} />`, document.getElementById("page"));
