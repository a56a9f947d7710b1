import { Client, Refused, AlreadyRated } from "./albatross.js";
const shop = new Client("http://localhost:8000", { key: "k", patience: 3 });
const d = await shop.recommend("ann", { n: 2, candidates: ["a"], where: { attribute: "price", to: 3 }, exclude_seen: "rated" });
const item: string = d.items[0]!.item;
const a = await shop.rate(d, 4, { item });
const b: boolean = a.applied;
try { await shop.report(d.decision_id, "click"); } catch (e) { if (e instanceof AlreadyRated) { const s: number = e.status; console.log(s); } else if (e instanceof Refused) throw e; }
const l = await shop.ask("/v1/users/list", { n: 3 });
console.log(l.users[0]!.user, b);
// @ts-expect-error
await shop.recommend("ann", { nn: 2 });
// @ts-expect-error
await shop.rate(d, "4");
// @ts-expect-error
await shop.ask("/v1/nothing");
