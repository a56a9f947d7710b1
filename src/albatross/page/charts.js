// Curves with bands, by uPlot. Colours come from the style sheet, so that both themes and print look right.

import { marks } from "./numbers.js";
import { html, uPlot, useEffect, useRef, useState } from "./vendor/vendor.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Changes with the theme, so that canvases are redrawn. */
export function useTheme() {
  const [theme, setTheme] = useState(dark.matches);
  useEffect(() => {
    const look = () => setTheme(dark.matches);
    dark.addEventListener("change", look);
    return () => dark.removeEventListener("change", look);
  }, []);
  return theme;
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** The width of an element, as it changes. */
export function useWidth(element) {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(element.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

function lines(series) {
  const drawn = [{}];
  const bands = [];
  for (const one of series) {
    const stroke = colour(one.colour);
    drawn.push({ label: one.label, stroke, width: 2, dash: one.dash, points: { show: (plot) => plot.data[0].length < 3 }, spanGaps: true });
    if (one.lower !== undefined) {
      const at = drawn.length;
      drawn.push({ stroke: "transparent", points: { show: false }, spanGaps: true }, { stroke: "transparent", points: { show: false }, spanGaps: true });
      bands.push({ series: [at + 1, at], fill: `color-mix(in srgb, ${stroke} 18%, transparent)` });
    }
  }
  return { drawn, bands };
}

/** Space for the longest label of the axis. */
const wide = (_, values) => Math.max(46, 20 + 7 * Math.max(0, ...(values ?? []).map((text) => text.length)));

const data = (x, series) => [x, ...series.flatMap((one) => (one.lower === undefined ? [one.values] : [one.values, one.lower, one.upper]))];

/**
 * Curves over x. `series`: {label, values, lower?, upper?, colour, dash?}. `range`: of y; `reach`: of x; `say(at)`: what to read where the pointer is.
 * The canvas is for the eyes only: the figure around it has the same as a table.
 */
export function Curves({ x, series, label, range, reach, say, height = 200, time = false }) {
  const box = useRef(null);
  const plot = useRef(null);
  const width = useWidth(box);
  const theme = useTheme();
  const [pointed, setPointed] = useState(null);
  const shape = series.map((one) => `${one.label} ${one.colour} ${one.lower !== undefined}`).join("\n");
  useEffect(() => {
    if (width === 0) return undefined;
    const { drawn, bands } = lines(series);
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "12px system-ui" };
    const options = {
      width,
      height,
      series: drawn,
      bands,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      scales: { x: { time, ...(reach && { range: () => reach }) }, y: range ? { range: () => range } : {} },
      axes: [{ ...axis, ...(time ? {} : { values: (_, splits) => marks(splits) }) }, { ...axis, values: (_, splits) => marks(splits), size: wide }],
      hooks: { setCursor: [(made) => setPointed(made.cursor.idx ?? null)] },
    };
    const made = new uPlot(options, data(x, series), box.current);
    plot.current = made;
    return () => {
      plot.current = null;
      made.destroy();
    };
  }, [width, theme, shape, height, range?.[0], range?.[1], reach?.[1]]);
  useEffect(() => {
    plot.current?.setData(data(x, series));
  });
  const at = pointed !== null && pointed < x.length ? pointed : x.length - 1;
  return html`<div>
    <p class="readout" aria-hidden="true">${at >= 0 ? say(at) : "no data yet"}</p>
    <div class="chart" ref=${box} role="img" aria-label=${label} style=${{ height: `${height}px` }}></div>
  </div>`;
}
