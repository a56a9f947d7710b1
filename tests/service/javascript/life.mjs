/** A life in a shop, told as Python's `life` of test_javascript.py tells it. */
export async function life({ Client, Refused }, url) {
  const shop = new Client(url);
  await shop.upsertItem("water");
  const decision = await shop.recommend("ann", { candidates: ["tea", "coffee", "mate"], explain: true });
  const first = await shop.rate(decision, 4);
  const slate = await shop.recommend("ann", { n: 2, exclude: ["tea"], exclude_seen: "rated" });
  const second = await shop.rate(slate.decision_id, 2, { item: "water", event_id: "e-2" });
  const again = [await shop.rateItem("bob", "tea", 5, { event_id: "e-3" }), await shop.rateItem("bob", "tea", 5, { event_id: "e-3" })];
  await shop.setRewards({ click: 2, purchase: 5 });
  await shop.reportItem("bob", "mate", "click");
  const bought = await shop.recommend("eve", { candidates: ["coffee"] });
  await shop.report(bought, "click");
  await shop.report(bought.decision_id, "purchase", { item: "coffee", event_id: undefined });
  await shop.upsertItem("cup", { attributes: { kind: "gifts", price: 9 }, available_until: 4e9, in_stock: true });
  const ruled = await shop.recommend("eve", {
    n: 2,
    where: { attribute: "price", from: 1 },
    quotas: [{ attribute: "kind", most: 1 }],
    fresh: { share: 0.5 },
    by: "popular",
  });
  await shop.similarItems("tea");
  await shop.retireItem("water");
  await shop.restoreItem("water");
  await shop.join((await shop.recommend(null, { candidates: ["tea"] })).user, "eve");
  const view = await shop.user("ann", 3);
  const forgotten = await shop.forgetUser("bob");
  const series = await shop.series();
  await shop.snapshot();
  await shop.backup();
  const version = await shop.version();
  const listed = await shop.ask("/v1/users/list", { n: 1 });
  const refusals = [];
  for (const wrong of [
    () => shop.rate("nowhere", 3),
    () => shop.rateItem("ann", "tea", 6),
    () => shop.rateItem("ann", "tea", Number.NaN),
    () => shop.rateItem("ann", "tea", 3, { event_id: "e-2" }),
    () => shop.rate(decision, 3),
    () => shop.recommend("ann", { candidates: [] }),
    () => shop.recommend("ann", { candidates: ["tea"], exclude: ["tea"] }),
    () => shop.user("nobody"),
    () => shop.retireItem("nothing"),
  ]) {
    try {
      await wrong();
      refusals.push("accepted");
    } catch (error) {
      refusals.push(error instanceof Refused ? [error.name, error.status, error.code] : String(error));
    }
  }
  return {
    shown: [...decision.items, ...slate.items, ...ruled.items].map((shown) => [shown.item, shown.score, shown.propensity]),
    accepted: [first, second, ...again].map((each) => [each.seq, each.applied, each.duplicate]),
    view: [view.ratings, view.top.map((each) => each.item)],
    forgotten: forgotten.user ?? null,
    ratings: series.ratings,
    version: [version.seq, version.ratings, version.state_id],
    listed: listed.users.length,
    refusals,
  };
}

/** One visit of somebody who answers; the ids are made here. */
export async function visit({ Client }, url) {
  const shop = new Client(url);
  const decision = await shop.recommend("lost", { candidates: ["l1", "l2"] });
  const accepted = await shop.rate(decision, 4);
  return { decision: decision.decision_id, duplicate: accepted.duplicate };
}

/** Somebody whom nobody knows rates, and turns out to be `user`: how many ratings they have then. */
export async function meet({ Client }, url, user) {
  const shop = new Client(url);
  const decision = await shop.recommend(null, { candidates: ["m1", "m2"] });
  await shop.rate(decision, 4);
  await shop.join(decision.user, user);
  await shop.join(decision.user, user);
  return { visitor: decision.user, ratings: (await shop.user(user)).ratings };
}
