// Thousands of dots in one frame: each is a stamp of pixels, copied into an image that is passed to the canvas at once. Drawing them
// one by one on the canvas takes ten times as long.

import { colour } from "./charts.js";

const SHADES = 24; // colours on the map
const SIZES = [2.5, 9]; // radius of the most and of the least certain item, in pixels
const OPAQUE = 255;

const mix = (from, to, part) => from.map((value, at) => Math.round(value + (to[at] - value) * part));
const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const packed = ([red, green, blue]) => ((OPAQUE << 24) | (blue << 16) | (green << 8) | red) >>> 0; // in the memory layout of an image

/** From cold over neutral to warm. */
function shades() {
  const [cold, neutral, warm] = ["cold", "neutral", "warm"].map((name) => rgb(colour(name)));
  return Array.from({ length: SHADES }, (_, at) => {
    const part = (2 * at) / (SHADES - 1);
    const [r, g, b] = part < 1 ? mix(cold, neutral, part) : mix(neutral, warm, part - 1);
    return `rgb(${r} ${g} ${b})`;
  });
}

/** Position of each item, from −½ to ½ on both axes, its size and its shade. */
export function layout(items, flat) {
  const across = Float64Array.from(items, (one) => (flat ? Math.log10(1 + one.ratings) : one.x));
  const up = Float64Array.from(items, (one) => (flat ? one.mean : one.y));
  for (const values of [across, up]) {
    const least = values.reduce((a, b) => Math.min(a, b));
    const span = values.reduce((a, b) => Math.max(a, b)) - least || 1;
    values.forEach((value, at) => (values[at] = (value - least) / span - 0.5));
  }
  const most = items.reduce((largest, one) => Math.max(largest, one.bonus ?? 0), 1e-12);
  const [from, to] = items.reduce(([low, high], one) => [Math.min(low, one.mean), Math.max(high, one.mean)], [Infinity, -Infinity]);
  return {
    across,
    up,
    size: Uint8Array.from(items, (one) => Math.round(SIZES[0] + (SIZES[1] - SIZES[0]) * (one.bonus === null ? 1 : Math.sqrt(Math.max(one.bonus, 0) / most)))),
    shade: Uint8Array.from(items, (one) => Math.max(0, Math.min(SHADES - 1, Math.round(((one.mean - from) / (to - from || 1)) * (SHADES - 1))))),
  };
}

/** A dot of one shade and size: offsets of the pixels it covers, from its center in an image of this width, and of those it covers partly. */
function stamp(fill, edge, radius, pixels, wide) {
  const half = Math.ceil((radius + 1) * pixels);
  const side = 2 * half + 1;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  const pen = canvas.getContext("2d");
  pen.beginPath();
  pen.arc(half + 0.5, half + 0.5, radius * pixels, 0, 2 * Math.PI);
  pen.fillStyle = fill;
  pen.fill();
  pen.strokeStyle = edge;
  pen.lineWidth = 0.75 * pixels;
  pen.stroke();
  const { data } = pen.getImageData(0, 0, side, side);
  const whole = [[], []];
  const part = [[], []];
  for (let at = 0; at < side * side; at += 1) {
    const [red, green, blue, cover] = data.subarray(4 * at, 4 * at + 4);
    if (cover === 0) continue;
    const [offsets, values] = cover === OPAQUE ? whole : part;
    offsets.push((Math.floor(at / side) - half) * wide + (at % side) - half);
    values.push(cover === OPAQUE ? packed([red, green, blue]) : ((cover << 24) | (blue << 16) | (green << 8) | red) >>> 0);
  }
  return { at: Int32Array.from(whole[0]), value: Uint32Array.from(whole[1]), partAt: Int32Array.from(part[0]), partValue: Uint32Array.from(part[1]) };
}

/** A painter of dots: `paint(dots, middle, zoom)` draws on a canvas of this size. `place(dot, …)` gives the position of one. */
export function painter(canvas, width, height, dots) {
  const pixels = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * pixels);
  canvas.height = Math.round(height * pixels);
  const reach = Math.ceil((SIZES[1] + 1) * pixels); // of a stamp from its center
  const margin = 2 * reach; // around the image, so that no stamp is clipped
  const wide = canvas.width + 2 * margin;
  const high = canvas.height + 2 * margin;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(wide, high);
  const target = new Uint32Array(image.data.buffer);
  const ground = packed(rgb(colour("ground")));
  const edge = colour("surface");
  const sizes = Array.from({ length: Math.round(SIZES[1]) + 1 }, (_, radius) => radius);
  const stamps = shades().map((fill) => sizes.map((radius) => (radius < Math.round(SIZES[0]) ? null : stamp(fill, edge, radius, pixels, wide))));
  const ring = colour("text");
  const place = (dot, { x, y, zoom }) => [width / 2 + zoom * (dots.across[dot] * (width - 40) + x), height / 2 - zoom * (dots.up[dot] * (height - 40) - y)];
  function paint({ x, y, zoom }, chosen) {
    target.fill(ground);
    const { across, up, size, shade } = dots;
    const [scaleX, scaleY] = [pixels * zoom * (width - 40), pixels * zoom * (height - 40)];
    const [fromX, fromY] = [pixels * (width / 2 + zoom * x) + margin, pixels * (height / 2 + zoom * y) + margin];
    for (let dot = 0; dot < across.length; dot += 1) {
      const column = Math.round(fromX + scaleX * across[dot]);
      const line = Math.round(fromY - scaleY * up[dot]);
      if (column < reach || line < reach || column >= wide - reach || line >= high - reach) continue;
      const { at, value, partAt, partValue } = stamps[shade[dot]][size[dot]];
      const middle = line * wide + column;
      for (let pixel = 0; pixel < at.length; pixel += 1) target[middle + at[pixel]] = value[pixel];
      for (let pixel = 0; pixel < partAt.length; pixel += 1) {
        const over = partValue[pixel];
        const under = target[middle + partAt[pixel]];
        const cover = over >>> 24;
        const rest = OPAQUE - cover;
        const red = ((over & 255) * cover + (under & 255) * rest) >> 8;
        const green = (((over >> 8) & 255) * cover + ((under >> 8) & 255) * rest) >> 8;
        const blue = (((over >> 16) & 255) * cover + ((under >> 16) & 255) * rest) >> 8;
        target[middle + partAt[pixel]] = (OPAQUE << 24) | (blue << 16) | (green << 8) | red;
      }
    }
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.putImageData(image, -margin, -margin);
    if (chosen !== null) {
      const [left, top] = place(chosen, { x, y, zoom });
      pen.setTransform(pixels, 0, 0, pixels, 0, 0);
      pen.beginPath();
      pen.arc(left, top, dots.size[chosen] + 3, 0, 2 * Math.PI);
      pen.lineWidth = 2;
      pen.strokeStyle = ring;
      pen.stroke();
    }
  }
  return { paint, place };
}
