// All items on one map, and as a table.

import { post } from "../api.js";
import { useTheme, useWidth } from "../charts.js";
import { layout, painter } from "../dots.js";
import { Choose, Failure, Figure, Name, Needs, Notice, Table, number, share, useAnswer, whole } from "../parts.js";
import { Attributes, limits } from "../rules.js";
import { html, useEffect, useRef, useState } from "../vendor/vendor.js";
import { findUsers } from "./try.js";

const AT_ONCE = 1000;
const MOST = 10_000; // limit of items on the map
const MOST_ROWS = 200; // of the table of items

export function Items({ query }) {
  return html`<h1 tabindex="-1">Items</h1>
    <p class="lead">Items with similar ratings are close together. Large: uncertain. Warm: high predicted rating.</p>
    <${Needs} scopes=${["read"]}><${Catalogue} query=${query} /></${Needs}>`;
}

async function load(search, user, abort, progress) {
  const found = [];
  let after = 0;
  for (;;) {
    const body = { n: AT_ONCE, after, ...(search ? { search } : {}), ...(user ? { user } : {}) };
    const told = await post("/v1/items/list", body, abort);
    found.push(...told.items);
    progress(found.length, told.total);
    if (told.next === null || found.length >= MOST) return { ...told, items: found.slice(0, MOST) };
    after = told.next;
  }
}

function Catalogue({ query }) {
  const search = query.get("search") ?? "";
  const user = query.get("user") ?? "";
  const [given, setGiven] = useState(search);
  const [who, setWho] = useState(user);
  const [loaded, setLoaded] = useState([0, 0]);
  const { answer, error, busy } = useAnswer((abort) => load(search, user, abort, (done, total) => setLoaded([done, total])), [search, user]);
  function look(event) {
    event.preventDefault();
    location.hash = `/items?${new URLSearchParams({ ...(given && { search: given }), ...(who && { user: who }) })}`;
  }
  return html`
    <form class="card ask" onSubmit=${look} noValidate>
      <div class="row">
        <label class="field grow"><span>Search</span><input type="search" dir="auto" data-testid="items-search" value=${given} maxlength="256" onInput=${(event) => setGiven(event.target.value)} /></label>
        <${Choose} id="items-who" testid="items-user" label="As seen for user" value=${who} onChange=${setWho} find=${findUsers} />
        <button class="primary">Look</button>
      </div>
      <small>Without a user: for a user without ratings.</small>
    </form>
    <${Failure} error=${error} />
    ${busy && html`<p class="about" role="status">${whole(loaded[0])} of ${whole(loaded[1])} items …</p>`}
    ${answer && (answer.items.length === 0 ? html`<${Notice}>No items found.</${Notice}>` : html`<${Shown} answer=${answer} />`)}`;
}

function Shown({ answer }) {
  const { items, explained } = answer;
  const described = items.some((one) => Object.keys(one.attributes).length > 0);
  const limited = items.some((one) => limits(one) !== "");
  const columns = [
    { name: "item", title: "item", text: true, show: (value) => html`<${Name} of=${value} />` },
    { name: "ratings", title: "ratings", show: whole }, { name: "rating", title: "mean rating" },
    { name: "mean", title: "expected" }, { name: "bonus", title: "bonus" }, { name: "shown", title: "shown", show: whole },
    { name: "retired", title: "retired", text: true, show: (value) => (value ? "yes" : "") },
    ...(limited ? [{ name: "available", title: "available", text: true, show: (value) => value }] : []),
    ...(described ? [{ name: "attributes", title: "attributes", text: true, show: (value) => html`<${Attributes} of=${value} />` }] : []),
    { name: "x", title: "x" }, { name: "y", title: "y" },
  ];
  const rows = items.map((one) => [one.item, one.ratings, one.rating, one.mean, one.bonus, one.shown, one.retired, ...(limited ? [limits(one)] : []), ...(described ? [one.attributes] : []), one.x, one.y]);
  const about = explained === null
    ? "This policy has no item vectors. x: number of ratings; y: predicted rating."
    : `The two axes along which item vectors vary most: they explain ${share(explained[0])} and ${share(explained[1])} of the variance.`;
  return html`
    ${items.length < answer.total && html`<p class="about">${whole(items.length)} of ${whole(answer.total)} items.</p>`}
    <${Figure} id="items-map" title="Map of items" about=${about} columns=${columns} rows=${rows}>
      <${Scatter} items=${items} flat=${explained === null} />
    </${Figure}>
    <section class="card" aria-label="All items">
      <h2>All items</h2>
      <${Table} caption="Items, best prediction first" hidden=${true} columns=${columns.slice(0, -2)} rows=${[...rows].sort((a, b) => b[3] - a[3]).slice(0, MOST_ROWS)} />
      ${rows.length > MOST_ROWS && html`<p class="about">The best ${MOST_ROWS}; search for others, or take the files above.</p>`}
    </section>`;
}

function Scatter({ items, flat }) {
  const box = useRef(null);
  const canvas = useRef(null);
  const width = useWidth(box);
  const theme = useTheme();
  const view = useRef({ x: 0, y: 0, zoom: 1 });
  const [pointed, setPointed] = useState(null);
  const draw = useRef(() => {});
  const height = Math.max(260, Math.min(460, Math.round(0.6 * width)));
  useEffect(() => {
    if (width === 0) return;
    const dots = layout(items, flat);
    draw.chosen = null;
    setPointed(null);
    const { paint, place } = painter(canvas.current, width, height, dots);
    let asked = 0;
    const repaint = () => {
      asked = 0;
      paint(view.current, draw.chosen);
    };
    draw.current = () => (asked ||= requestAnimationFrame(repaint));
    draw.nearest = (x, y) => {
      let best = null;
      let least = 18 ** 2;
      for (let dot = 0; dot < items.length; dot += 1) {
        const [a, b] = place(dot, view.current);
        const far = (a - x) ** 2 + (b - y) ** 2;
        if (far < least) [best, least] = [dot, far];
      }
      return best;
    };
    draw.current();
    return () => cancelAnimationFrame(asked);
  }, [items, width, height, theme, flat]);
  const point = (event) => {
    const frame = canvas.current.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  const move = (x, y) => {
    view.current.x += x / view.current.zoom;
    view.current.y += y / view.current.zoom;
    draw.current();
  };
  const zoom = (by) => {
    view.current.zoom = Math.max(1, Math.min(40, view.current.zoom * by));
    if (view.current.zoom === 1) Object.assign(view.current, { x: 0, y: 0 });
    draw.current();
  };
  const held = useRef(null);
  function onMove(event) {
    const [x, y] = point(event);
    if (held.current) {
      move(x - held.current[0], y - held.current[1]);
      held.current = [x, y];
      return;
    }
    const found = draw.nearest?.(x, y) ?? null;
    if (found !== draw.chosen) {
      draw.chosen = found;
      setPointed(found === null ? null : items[found]);
      draw.current();
    }
  }
  const keys = { ArrowLeft: () => move(30, 0), ArrowRight: () => move(-30, 0), ArrowUp: () => move(0, 30), ArrowDown: () => move(0, -30), "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => zoom(0) };
  return html`<div>
    <p class="readout">${pointed === null ? "Point at an item; drag to move; + and − to zoom." : html`<${Name} of=${pointed.item} /> · ${whole(pointed.ratings)} ratings, mean ${number(pointed.rating)} · expected ${number(pointed.mean)}, bonus ${number(pointed.bonus)}${pointed.retired && " · retired"}${limits(pointed) && ` · ${limits(pointed)}`}${Object.keys(pointed.attributes).length > 0 && html` · <${Attributes} of=${pointed.attributes} />`}`}</p>
    <div class="map" ref=${box} style=${{ height: `${height}px` }}>
      <canvas ref=${canvas} tabindex="0" role="img" aria-label=${`Map of ${items.length} items. The table below has the same. Arrow keys move, plus and minus zoom.`}
        onPointerMove=${onMove}
        onPointerDown=${(event) => { held.current = point(event); event.target.setPointerCapture(event.pointerId); }}
        onPointerUp=${() => (held.current = null)}
        onPointerCancel=${() => (held.current = null)}
        onKeyDown=${(event) => { if (keys[event.key]) { event.preventDefault(); keys[event.key](); } }}></canvas>
      <div class="zoom"><button type="button" aria-label="Zoom in" onClick=${() => zoom(1.5)}>+</button><button type="button" aria-label="Zoom out" onClick=${() => zoom(1 / 1.5)}>−</button></div>
    </div>
    <p class="legend" aria-hidden="true"><span class="ramp"></span>predicted, low to high <span class="dots"><i></i><i></i><i></i></span>certain to uncertain</p>
  </div>`;
}
