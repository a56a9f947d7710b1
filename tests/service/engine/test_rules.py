"""Rules of a recommendation: they are kept, they replay, and propensities stay true."""

import itertools
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.service.api.errors import BadValue, EventReused, NoEligibleCandidate
from albatross.service.api.requests import AskSeries, Feedback, FeedbackBatch, Recommend, UpsertItem, UpsertItems, ViewDecision, ViewUser
from albatross.service.api.rules import DEEPEST, MOST_CONDITIONS, By, Fresh, Quota, Where
from albatross.service.api.views import NewItems
from albatross.service.engine.deciding.newcomers import FreshBesideQuotas, Newcomers
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.ruling import PER_SLATE, decide, handles_of_request, request_of, rules_of
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.descriptions import Descriptions
from albatross.service.engine.learned.filtering import check_where, mask_of
from albatross.service.engine.learned.options import Options
from albatross.service.engine.recovering.verifying import redecide
from albatross.service.engine.viewing.reading import new_items
from albatross.service.storage.events import Decided, Description, Placed, Rules

KINDS = ("drinks", "gifts", "books")


def stocked(folder: Path, floor: float = 0.2) -> Engine:
    """Twelve items of three kinds, some rated, some shown."""
    engine = Engine(folder, Options(scale=(1, 5), policy=ALB(rank=2), floor=floor))
    engine.wait_ready()
    items = [UpsertItem(f"i{number}", {"kind": KINDS[number % 3], "price": float(number), "tags": ["x"]}) for number in range(12)]
    engine.ask(UpsertItems(items))
    ratings = [Feedback(f"e{number}", 1 + number * 7 % 5, None, f"u{number % 4}", f"i{number % 9}") for number in range(30)]
    engine.ask(FeedbackBatch(ratings))
    for number in range(8):
        engine.ask(Recommend("somebody else", candidates=[f"i{number}"]))
    return engine


def holds(where: Where, attributes: dict[str, Any]) -> bool:
    """What a condition means, for one item."""
    if where.attribute is not None:
        value = attributes.get(where.attribute)
        if where.is_ is not None:
            wanted = {where.is_} if isinstance(where.is_, str) else set(where.is_)
            return not isinstance(value, float) and bool(wanted & ({value} if isinstance(value, str) else set(value or ())))
        low, high = -np.inf if where.from_ is None else where.from_, np.inf if where.to is None else where.to
        return isinstance(value, float) and low <= value <= high
    if where.all is not None:
        return all(holds(part, attributes) for part in where.all)
    if where.any is not None:
        return any(holds(part, attributes) for part in where.any)
    return not any(holds(part, attributes) for part in where.none or ())


def some_condition(random: np.random.Generator, depth: int = 0) -> Where:
    form = int(random.integers(5 if depth < 3 else 2))
    if form == 0:
        labels = random.choice(list("abcd"), int(random.integers(1, 3))).tolist()
        return Where(attribute=str(random.choice(["p", "q"])), is_=labels if random.random() < 0.5 else labels[0])
    if form == 1:
        low, high = (float(random.integers(-3, 4)) if random.random() < 0.7 else None for _ in range(2))
        return Where(attribute=str(random.choice(["p", "q"])), from_=low, to=high if high is not None or low is not None else 1.0)
    parts = [some_condition(random, depth + 1) for _ in range(int(random.integers(1, 4)))]
    return (Where(all=parts), Where(any=parts), Where(none=parts))[form - 2]


def test_masks_are_what_the_conditions_say_of_each_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was asked before, whatever has changed since, and however few masks are kept."""
    monkeypatch.setattr("albatross.service.engine.learned.descriptions.MASK_BYTES", 500)
    random, described = np.random.default_rng(0), Descriptions()
    known: list[dict[str, Any]] = []
    for step in range(600):
        if step % 3 == 0:
            number = int(random.integers(len(known) + 1))
            kinds = (float(random.integers(-3, 4)), str(random.choice(list("abcd"))), random.choice(list("abcd"), 2).tolist())
            said: dict[str, Any] = {name: kinds[int(random.integers(3))] for name in ("p", "q") if random.random() < 0.8}
            known[number : number + 1] = [said]
            described.describe(number, Description(said))
        where = some_condition(random)
        check_where(where)
        assert mask_of(where, described, len(known)).tolist() == [holds(where, attributes) for attributes in known]


def test_each_label_of_a_condition_costs_the_same() -> None:
    """Also when thousands of labels were asked for before."""
    described = Descriptions()
    for number in range(20):
        described.describe(number, Description({f"a{name}": [f"{number} {label}" for label in range(64)] for name in range(10)}))
    labels = [f"{number} {label}" for number in range(20) for label in range(64)]

    def steps(name: int) -> int:
        """The calls made to find the items with these labels; a generator is called for each of its values."""
        calls = 0

        def count(*_: Any) -> None:
            nonlocal calls
            calls += 1

        sys.setprofile(count)
        try:
            mask_of(Where(attribute=f"a{name}", is_=labels), described, 20)
        finally:
            sys.setprofile(None)
        return calls

    first, *later = (steps(name) for name in range(10))
    assert max(later) <= 1.1 * first  # garbage may be collected meanwhile, and who listens to that is called, too


@pytest.mark.parametrize(
    "where",
    [
        Where(),
        Where(attribute="a"),
        Where(is_="x"),
        Where(attribute="a", is_="x", to=1.0),
        Where(attribute="a", is_=[]),
        Where(all=[]),
        Where(all=[Where(attribute="a", is_="x")], any=[Where(attribute="a", is_="x")]),
        Where(attribute="a", to=float("nan")),
        Where(attribute="a\n", is_="x"),
        Where(any=[Where(attribute="a", is_="x")] * (MOST_CONDITIONS + 1)),
    ],
)
def test_conditions_of_no_form_are_refused(where: Where) -> None:
    with pytest.raises(BadValue, match="accepted"):
        check_where(where)


def test_nesting_has_an_end() -> None:
    where = Where(attribute="a", is_="x")
    for _ in range(DEEPEST - 1):
        where = Where(none=[where])
    check_where(where)
    with pytest.raises(BadValue, match="deep"):
        check_where(Where(none=[where]))


def test_rules_are_kept(tmp_path: Path) -> None:
    with stocked(tmp_path / "shop") as engine:
        cheap = Where(all=[Where(attribute="price", to=8.0), Where(none=[Where(attribute="kind", is_="gifts")])])
        for number in range(20):
            slate = engine.ask(Recommend(f"u{number % 5}", 5, where=cheap, quotas=[Quota("kind", 2)])).items
            kinds = Counter(KINDS[int(item.item[1:]) % 3] for item in slate)
            assert len(slate) == 4  # two of each kind that is left, and no more
            assert kinds == {"drinks": 2, "books": 2}
            assert all(int(item.item[1:]) <= 8 for item in slate)
        assert len(engine.ask(Recommend("ann", 12, quotas=[Quota("tags", 3), Quota("nothing", 1)])).items) == 3
        with pytest.raises(NoEligibleCandidate, match="where"):
            engine.ask(Recommend("ann", where=Where(attribute="price", from_=100.0)))
        assert engine.ask(Recommend("ann", where=Where(attribute="price", from_=8.0), exclude=["i8", "i9", "i10"])).item == "i11"


def test_popular_and_new_are_rankings_of_their_own(tmp_path: Path) -> None:
    with stocked(tmp_path / "shop", floor=0.0) as engine:
        ledger = engine._model.ledger
        worth = (ledger.item_sums - ledger.item_ratings)[:12]
        popular = [int(item.item[1:]) for item in engine.ask(Recommend("stranger", 4, by="popular")).items]
        assert worth[popular].tolist() == sorted(worth, reverse=True)[:4]
        assert [item.item for item in engine.ask(Recommend("stranger", 3, by="new")).items] == ["i11", "i10", "i9"]
        drinks = engine.ask(Recommend("stranger", 2, by="new", where=Where(attribute="kind", is_="drinks")))
        assert [item.item for item in drinks.items] == ["i9", "i6"]
        assert all(item.propensity == 1.0 for item in drinks.items)
        answer = engine.ask(Feedback("f", 5, drinks.decision_id, item="i9"))
        assert answer.applied


def test_strangers_may_be_shown_what_is_popular_until_they_have_rated(tmp_path: Path) -> None:
    with stocked(tmp_path / "shop", floor=0.0) as engine:
        popular = engine.ask(Recommend("a", 3, by="popular")).items
    with Engine(tmp_path / "shop", Options(strangers="popular")) as engine:
        engine.wait_ready()
        first = engine.ask(Recommend("b", 3, request_id="b's first"))
        assert [item.item for item in first.items] == [item.item for item in popular]
        assert engine.ask(Recommend("b", 3, request_id="b's first")) == first
        assert engine.ask(Recommend("b", by="new")).item == "i11"
        # Single items are decided together. A fallback has no explanation.
        waiting = [engine.submit(Recommend(user, explain="reasons")) for user in ("b", "u1", "b")]
        assert [answer.result().explanation is None for answer in waiting] == [True, False, True]
        assert waiting[0].result().item == popular[0].item
        engine.ask(Feedback("e", 5, first.decision_id, item=first.items[0].item))
        assert engine.ask(Recommend("b", explain="reasons")).explanation is not None
    assert main(["verify", str(tmp_path / "shop")]) == 0
    with pytest.raises(InvalidInput, match="strangers is 'random'; accepted: policy, popular, new"):
        Engine(tmp_path / "other", Options(strangers="random"))  # type: ignore[arg-type]


def test_popularity_and_age_are_no_predictions(tmp_path: Path) -> None:
    """They would count as wildly optimistic, and the page would show that the policy is."""
    with stocked(tmp_path / "shop") as engine:
        before = engine.ask(AskSeries())
        for by in ("popular", "new"):
            shown = engine.ask(Recommend("ann", by=by, explain="reasons"))
            assert shown.explanation is None
            engine.ask(Feedback(by, 5, shown.decision_id))
        after = engine.ask(AskSeries())
        assert sum(after.ratings) == sum(before.ratings) + 2
        assert not any(after.calibration)
        assert not any(after.optimism)
        shown = engine.ask(Recommend("ann", where=Where(attribute="kind", is_="drinks")))
        engine.ask(Feedback("by the policy", 5, shown.decision_id))
        assert engine.ask(AskSeries()).optimism[-1] == pytest.approx(shown.items[0].score - 5)


def test_a_decision_tells_its_rules(tmp_path: Path) -> None:
    where = Where(all=[Where(attribute="price", to=8.0), Where(none=[Where(attribute="kind", is_=["gifts"])])])
    with stocked(tmp_path / "shop") as engine:
        asked = engine.ask(Recommend("u1", 3, where=where, quotas=[Quota("kind", 2)], fresh=Fresh(0.5, 3)))
        view = engine.ask(ViewDecision(asked.decision_id))
        assert (view.where, view.quotas, view.fresh, view.by) == (where, [Quota("kind", 2)], NewItems(0.5, 3), "policy")
        assert all(one.because is not None for one in view.items)
        view = engine.ask(ViewDecision(engine.ask(Recommend("u1")).decision_id))
        assert (view.where, view.quotas, view.fresh, view.by) == (None, [], None, "policy")


def test_attributes_that_no_item_has_are_named(tmp_path: Path) -> None:
    """They do not stop a recommendation: a shop may have rules before its items have what they are about."""
    with stocked(tmp_path / "shop") as engine:
        with pytest.raises(NoEligibleCandidate, match=r"no item has the attribute 'knid' \(known: 'kind', 'price', 'tags'\); accepted"):
            engine.ask(Recommend("u1", where=Where(any=[Where(attribute="knid", is_="books")])))
        with pytest.raises(NoEligibleCandidate, match="none satisfies `where`; accepted"):
            engine.ask(Recommend("u1", where=Where(attribute="kind", is_="cars")))
        none = Where(none=[Where(attribute="sold", is_="yes"), Where(attribute="kind", is_="books")])
        asked = engine.ask(Recommend("u1", where=none, quotas=[Quota("brnad", 1), Quota("sold", 1)]))
        assert engine.ask(ViewDecision(asked.decision_id)).unknown == ["sold", "brnad"]
        engine.ask(UpsertItem("i1", {f"a{number}": "x" for number in range(64)}))
        with pytest.raises(NoEligibleCandidate) as refused:
            engine.ask(Recommend("u1", where=Where(attribute="z" * 256, is_="books")))
        assert "and 51 more" in str(refused.value)
        assert len(str(refused.value)) < 500


def test_what_is_close_to_a_fallback_is_ranked_like_it(tmp_path: Path) -> None:
    """The policy's predictions would stand beside sums of ratings, and have no part in the choice."""
    with stocked(tmp_path / "shop", floor=0.0) as engine:
        bys: tuple[By, ...] = ("popular", "new")
        everything = {by: engine.ask(Recommend("nobody", 8, by=by)).items for by in bys}
        for by, ranked in everything.items():
            view = engine.ask(ViewDecision(engine.ask(Recommend("u1", 3, by=by)).decision_id))
            assert view.by == by
            assert [(one.item, one.score, one.mean) for one in view.close] == [(one.item, one.score, one.mean) for one in ranked[3:]]
            assert [one.because for one in view.items] == [None] * 3
        unseen = engine.ask(Recommend("u1", 2, by="popular", exclude_seen="rated")).decision_id
        rated = {entry.item for entry in engine.ask(ViewUser("u1", 0, history=100)).history}
        assert rated.isdisjoint(one.item for one in engine.ask(ViewDecision(unseen)).close)


def test_a_share_of_each_place_is_told_as_such() -> None:
    """Older logs have it."""
    placed, rules = [Placed("i1", 0.0, 0.0, 1.0, False)], Rules(None, [], [0.5, 3.0], "policy")
    asked = request_of(Decided(0.0, "u1", 1, None, [], "none", None, 1, 0, placed, None, rules=rules))
    assert new_items(asked.fresh) == NewItems(0.5, 3, each_place=True)


@pytest.mark.parametrize("quotas", [[], [Quota("kind", 1)]])
def test_a_share_of_the_log_means_what_it_meant(quotas: list[Quota]) -> None:
    asked = Recommend("u1", 2, quotas=quotas, fresh=Fresh(0.5, 3), request_id="r")
    rules = rules_of(asked)
    assert rules is not None
    assert rules.fresh is not None
    event = Decided(0.0, "u1", 2, None, [], "none", "r", 1, 0, [], None, rules=rules)
    again = request_of(event)
    assert again == asked
    before = request_of(replace(event, rules=replace(rules, fresh=[0.5, 3, PER_SLATE])))
    assert type(before.fresh) is (FreshBesideQuotas if quotas else Fresh)
    assert handles_of_request(before) == handles_of_request(asked)  # a delivery that is repeated after a new version was installed


RULES: list[tuple[str, dict[str, Any]]] = [
    ("where", {"where": Where(attribute="kind", is_=["drinks", "books"])}),
    ("quotas", {"quotas": [Quota("kind", 1)]}),
    ("fresh", {"fresh": Fresh(0.3, 1)}),
    ("all of it", {"where": Where(attribute="price", to=10.0), "quotas": [Quota("kind", 1)], "fresh": Fresh(0.25, 2)}),
    ("popular", {"by": "popular", "fresh": Fresh(0.5, 1)}),
    # Only i9 is new, and i0 and i3 would use up its kind.
    ("room for a new item", {"candidates": ["i0", "i1", "i3", "i9"], "quotas": [Quota("kind", 1)], "fresh": Fresh(0.5, 1)}),
    ("room that may not be needed", {"candidates": ["i0", "i1", "i3", "i9"], "quotas": [Quota("kind", 1)], "fresh": Fresh(0.2, 1)}),
    ("room for two", {"candidates": ["i0", "i1", "i2", "i8", "i9", "i11"], "quotas": [Quota("kind", 1)], "fresh": Fresh(0.9, 1)}),
]


@pytest.mark.parametrize("rules", [rules for _, rules in RULES], ids=[name for name, _ in RULES])
def test_propensities_are_frequencies_under_every_rule(rules: dict[str, Any], tmp_path: Path) -> None:
    """The same decision 6,000 times over: how often a pair comes is the product of the propensities it is told with."""
    with stocked(tmp_path / "shop", floor=0.4) as engine:
        view, times, told = Overlay(engine._model), 6_000, {}
        found: Counter[tuple[str, ...]] = Counter()
        for seq in range(times):
            placed = decide(view, Recommend("u1", 2, **rules), 1_000 + seq, 1, 0.0).event.items
            pair = tuple(item.item for item in placed)
            found[pair] += 1
            assert all(item.propensity is not None for item in placed)
            told[pair] = float(np.prod([item.propensity or 0.0 for item in placed]))
    for pair, probability in told.items():
        spread = np.sqrt(probability * (1 - probability) / times)
        assert abs(found[pair] / times - probability) < 5 * spread, pair
    assert 0.97 < sum(told.values()) <= 1.0 + 1e-9  # rare pairs may not have come


def test_new_items_get_their_share(tmp_path: Path) -> None:
    with stocked(tmp_path / "shop", floor=0.0) as engine:
        view = Overlay(engine._model)
        shown = [decide(view, Recommend("u1", fresh=Fresh(0.1, 1)), seq, 1, 0.0).event.items[0] for seq in range(3_000)]
        new = [item for item in shown if item.explored]
        assert {item.item for item in new} == {"i8", "i9", "i10", "i11"}  # those that no decision has shown
        assert abs(len(new) / 3_000 - 0.1) < 0.03


@pytest.mark.parametrize(("n", "share"), [(3, 0.5), (4, 0.1), (5, 0.7), (6, 0.5)])
def test_the_places_of_new_items_are_those_owed_or_one_more(n: int, share: float) -> None:
    """All ways to fill the slate, each with its probability, if new items come only where they are owed."""
    expected, total = 0.0, 0.0
    for new in itertools.product((False, True), repeat=n):
        newcomers, probability = Newcomers(Fresh(share), n), 1.0
        for one in new:
            probability *= newcomers.share() if one else 1.0 - newcomers.share()
            newcomers.show(float(one), float(not one))
        assert probability < 1e-12 or abs(sum(new) - n * share) < 1.0
        expected, total = expected + probability * sum(new), total + probability
    assert (total, expected) == pytest.approx((1.0, n * share))


def test_one_new_item_in_ten_places(tmp_path: Path) -> None:
    """A quota of the slate: never fewer, and where the share is no whole number of places, on average. Its place is any."""
    with stocked(tmp_path / "shop", floor=0.0) as engine:
        view, new = Overlay(engine._model), {"i8", "i9", "i10", "i11"}  # those that no decision has shown
        without = {item.item for item in decide(view, Recommend("u1", 10, by="popular"), 1, 1, 0.0).event.items}
        counts, places = Counter[int](), Counter[int]()
        for seq in range(1_500):
            slate = decide(view, Recommend("u1", 5, by="popular", fresh=Fresh(0.2, 1)), seq, 1, 0.0).event.items
            counts[sum(item.item in new for item in slate)] += 1
            places.update(place for place, item in enumerate(slate) if item.item in new)
        assert len(without & new) == 2
        assert set(counts) == {1}
        assert all(abs(places[place] / 1_500 - 0.2) < 5 * np.sqrt(0.16 / 1_500) for place in range(5))
        slates = [decide(view, Recommend("u1", 3, by="popular", fresh=Fresh(0.5, 1)), seq, 1, 0.0).event.items for seq in range(1_500)]
        counts = Counter(sum(item.item in new for item in slate) for slate in slates)
        assert set(counts) == {1, 2}
        assert abs(counts[2] / 1_500 - 0.5) < 5 * np.sqrt(0.25 / 1_500)


def test_quotas_leave_room_for_new_items(tmp_path: Path) -> None:
    """An old item of the same kind may not take the only place that a new one could have."""
    rules: dict[str, Any] = {"candidates": ["i0", "i1", "i3", "i9"], "quotas": [Quota("kind", 1)]}
    with stocked(tmp_path / "shop", floor=0.3) as engine:
        view = Overlay(engine._model)

        def slates(n: int, fresh: Fresh) -> list[list[str]]:
            asked = Recommend("u1", n, fresh=fresh, **rules)
            return [[item.item for item in decide(view, asked, seq, 1, 0.0).event.items] for seq in range(200)]

        for slate in slates(2, Fresh(0.5, 1)):
            assert "i9" in slate
            assert len(slate) == 2
        assert all("i9" in slate for slate in slates(9, Fresh(0.15, 1)))  # there is no ninth place
        assert any("i9" not in slate for slate in slates(2, FreshBesideQuotas(0.5, 1)))  # as older logs have it


def test_a_new_item_leaves_room_for_others(tmp_path: Path) -> None:
    with Engine(tmp_path / "shop", Options(scale=(1, 5), policy=ItemMean(), floor=0.5)) as engine:
        engine.wait_ready()
        kinds = {"first": ["a"], "both": ["a", "b"], "last": ["b"], "old": ["c"]}
        engine.ask(UpsertItems([UpsertItem(name, {"kind": labels}) for name, labels in kinds.items()]))
        engine.ask(Recommend("seen", candidates=["old"]))
        asked = Recommend("u", 3, quotas=[Quota("kind", 1)], fresh=Fresh(0.6, 1))
        for seq in range(200):
            slate = [item.item for item in decide(Overlay(engine._model), asked, seq, 1, 0.0).event.items]
            assert sorted(slate) == ["first", "last", "old"]


def fits(slate: Sequence[str], quotas: Sequence[tuple[int, Mapping[str, Sequence[str]]]]) -> bool:
    """Whether the items keep all quotas: how many may share a label, and the labels of each item."""
    return all(max(Counter(label for name in slate for label in labels[name]).values(), default=0) <= most for most, labels in quotas)


@pytest.mark.parametrize("several", [False, True], ids=["one label each", "several"])
def test_as_many_new_items_are_shown_as_are_owed_and_fit(several: bool, tmp_path: Path) -> None:
    """Whatever the labels are: compared with every slate that could be filled."""
    random = np.random.default_rng(1)
    with Engine(tmp_path / "shop", Options(scale=(1, 5), policy=ItemMean(), floor=0.5)) as engine:
        engine.wait_ready()
        for trial in range(60):
            names = [f"{trial} {number}" for number in range(7)]
            labels = {name: random.choice(list("abc"), int(random.integers(3)) if several else 1, False).tolist() for name in names}
            brands = {name: [str(random.choice(list("xy")))] for name in names}
            engine.ask(UpsertItems([UpsertItem(name, {"kind": labels[name], "brand": brands[name]}) for name in names]))
            old = set(random.choice(names, 4, False).tolist())
            engine.ask(Recommend("seen", 4, candidates=sorted(old)))
            most, n = int(random.integers(1, 3)), int(random.integers(2, 5))
            quotas = [(most, labels), *([(2, brands)] if several else [])]
            asked_quotas = [Quota("kind", most), *([Quota("brand", 2)] if several else [])]
            fresh = Fresh(float(random.choice([0.25, 0.5, 0.75])), 1)
            new = [name for name in names if name not in old]
            possible = max(k for k in range(4) if any(fits(slate, quotas) for slate in itertools.combinations(new, k)))
            asked = Recommend("u", n, candidates=names, quotas=asked_quotas, fresh=fresh)
            for seq in range(1_000, 1_020):
                slate = [item.item for item in decide(Overlay(engine._model), asked, seq, 1, 0.0).event.items]
                assert fits(slate, quotas)
                expected = min(int(n * fresh.share), possible)
                assert len(set(slate) - old) >= (min(expected, 1) if several else expected)


def test_decisions_with_rules_replay(tmp_path: Path) -> None:
    """Also those of one group, in which each sees what the ones before have shown."""
    with stocked(tmp_path / "shop") as engine:
        bys: tuple[By, ...] = ("policy", "popular", "new")
        with engine._changed:
            futures = [
                engine.submit(Recommend(f"u{number}", 3, by=by, explain=number % 2 == 0, **rules))
                for number, ((_, rules), by) in enumerate(itertools.product(RULES[:4], bys))
            ]
        assert len({future.result().decision_id for future in futures}) == 12
    with Engine(tmp_path / "shop") as engine:
        engine.wait_ready()
        assert redecide(engine._store, engine.genesis) == (20, [], 0)
    assert main(["verify", str(tmp_path / "shop"), "--decisions"]) == 0


def test_a_request_id_stands_for_its_rules_too(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ALB(rank=2)) as shop:
        shop.upsert_item("tea", attributes={"kind": "drinks"})
        shop.upsert_item("cup", attributes={"kind": "gifts"})
        asked: dict[str, Any] = {"where": {"attribute": "kind", "is": "gifts"}, "quotas": {"kind": 1}, "request_id": "r"}
        first = shop.recommend("ann", 2, **asked)
        assert [item.item for item in first.items] == ["cup"]
        assert shop.recommend("ann", 2, **asked) == first
        with pytest.raises(EventReused):
            shop.recommend("ann", 2, request_id="r")
        with pytest.raises(BadValue, match="where cannot be read"):
            shop.recommend("ann", where={"kind": "gifts"})
        for wrong in ({"fresh": Fresh(0.0)}, {"fresh": Fresh(0.5, 0)}, {"quotas": {"kind": 0}}, {"by": "luck"}):
            with pytest.raises(BadValue, match="accepted"):
                shop.recommend("ann", **wrong)
