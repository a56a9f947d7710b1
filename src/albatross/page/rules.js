// The rules of a decision and the attributes of an item, in plain words.

import { Name, clock, plain } from "./parts.js";
import { html } from "./vendor/vendor.js";

const joined = (parts, word) => parts.map((part, at) => html`${at > 0 && (at === parts.length - 1 ? ` ${word} ` : ", ")}${part}`);

function reach({ from, to }) {
  if (to === undefined || to === null) return `at least ${plain(from)}`;
  return from === undefined || from === null ? `at most ${plain(to)}` : `from ${plain(from)} to ${plain(to)}`;
}

/** A condition on items, as half a sentence. Inside another one, several parts stand in brackets. */
function condition(where, inside = false) {
  if (where.attribute) {
    const labels = [where.is ?? []].flat().map((label) => html`<${Name} of=${label} />`);
    return html`<${Name} of=${where.attribute} /> is ${labels.length > 0 ? joined(labels, "or") : reach(where)}`;
  }
  if (where.none) return html`not (${joined(where.none.map((part) => condition(part, true)), "or")})`;
  const parts = where.all ?? where.any;
  const said = joined(parts.map((part) => condition(part, true)), where.all ? "and" : "or");
  return inside && parts.length > 1 ? html`(${said})` : said;
}

const SEEN = { rated: "Nothing that the user had rated.", pending: "Nothing that the user had rated, or had been shown and not answered." };
const RANKED = {
  popular: "Ranked by popularity: the sum of an item's ratings above the bottom of the scale. The policy predicted nothing.",
  new: "Ranked by age, newest items first. The policy predicted nothing.",
};

function places({ share, below, each_place: each }) {
  const part = `${plain(100 * share)} %`;
  const whom = `items that were shown fewer than ${plain(below)} times`;
  return each ? `Each place with probability ${part} for ${whom}, drawn at random.` : `At least ${part} of the places for ${whom}, drawn at random, if there are any.`;
}

/** What the request of a decision demanded, one sentence each. */
export const rules = ({ where, quotas, fresh, by, exclude_seen: seen, unknown }) => [
  ...(where ? [html`Only items for which ${condition(where)}.`] : []),
  ...(SEEN[seen] ? [SEEN[seen]] : []),
  ...quotas.map((quota) => html`At most ${plain(quota.most)} with the same label of <${Name} of=${quota.attribute} />.`),
  ...(fresh ? [places(fresh)] : []),
  ...(RANKED[by] ? [RANKED[by]] : []),
  ...(unknown.length > 0 ? [html`No item has the attribute ${joined(unknown.map((name) => html`<${Name} of=${name} />`), "or")} now.`] : []),
];

/** The attributes of an item, compactly. */
export const Attributes = ({ of }) => html`<span class="attributes">${Object.entries(of).map(([name, value]) => html`<span><${Name} of=${name} /> ${
  typeof value === "number" ? plain(value) : [value].flat().map((label, at) => html`${at > 0 && ", "}<bdi>${label}</bdi>`)}</span>`)}</span>`;

/** Why an item may not be shown at any time: no stock, or a limited time; otherwise an empty text. */
export function limits({ in_stock: stocked, available_from: from, available_until: until }) {
  const times = [from === null ? "" : `from ${clock(from)}`, until === null ? "" : `until ${clock(until)}`];
  return [stocked ? "" : "not in stock", ...times].filter(Boolean).join(", ");
}
