"""What is said of items: kept, changed, replayed, and looked at by every decision."""

import itertools
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.service.api.errors import BadValue, NoEligibleCandidate, UnknownItem
from albatross.service.api.requests import ListItems, Recommend, UpsertItem, UpsertItems
from albatross.service.api.rules import MOST_NAMES, Where
from albatross.service.engine import group
from albatross.service.engine.handling import catalogue
from albatross.service.storage import snapshots
from albatross.service.storage.events import Description

TEA: dict[str, str | list[str] | float] = {"category": "drinks", "tags": ["hot", "leaf"], "price": 4.5}


def shop(folder: Path, **options: Any) -> Recommender:
    return Recommender(folder, scale=(1, 5), policy=options.pop("policy", ALB(rank=2)), **options)


def listed(here: Recommender, item: str) -> Any:
    return next(entry for entry in here.ask(ListItems()).items if entry.item == item)


def test_what_is_not_said_stays_as_it_was(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        first = here.upsert_item("tea", attributes=TEA, available_until=2e9)
        assert first.created
        assert here.upsert_item("tea").seq == first.seq == here.version().seq  # nothing new
        assert here.upsert_item("tea", attributes=TEA).seq == first.seq
        here.upsert_item("tea", in_stock=False)
        found = listed(here, "tea")
        assert (found.attributes, found.available_until, found.in_stock) == (TEA, 2e9, False)
        here.upsert_item("tea", attributes={"category": "gifts"}, available_until=None)
        found = listed(here, "tea")
        assert (found.attributes, found.available_until, found.in_stock) == ({"category": "gifts"}, None, False)
        assert here.version().items == 1


def test_what_is_not_there_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(group, "time", SimpleNamespace(time=lambda: now[0]))
    with shop(tmp_path / "shop", floor=1.0) as here:
        here.upsert_item("tea")
        here.upsert_item("stollen", available_from=2000, available_until=3000)
        here.upsert_item("mate", in_stock=False)

        def shown() -> set[str]:
            return {item.item for item in here.recommend("ann", n=3).items}

        assert shown() == {"tea"}
        for at, there in ((1999.0, False), (2000.0, True), (2999.0, True), (3000.0, False)):
            now[0] = at
            assert shown() == {"tea", "stollen"} if there else {"tea"}, at
            candidates = here.recommend("ann", n=3, candidates=["stollen", "tea", "mate"])
            assert {item.item for item in candidates.items} == ({"tea", "stollen"} if there else {"tea"})
        here.upsert_item("mate", in_stock=True)
        assert shown() == {"tea", "mate"}
        now[0] = 2500.0  # clocks may go back
        assert shown() == {"tea", "stollen", "mate"}
        now[0] = 4000.0
        with pytest.raises(NoEligibleCandidate, match="not available"):
            here.recommend("ann", candidates=["stollen"])
    monkeypatch.undo()
    assert main(["verify", str(tmp_path / "shop"), "--decisions"]) == 0


def test_descriptions_survive_with_and_without_a_snapshot(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        here.ask(UpsertItems([UpsertItem(f"i{number}", {"price": float(number), "kind": f"k{number % 3}"}) for number in range(200)]))
        here.upsert_item("i7", attributes={"kind": ["k1", "new"]}, in_stock=False, available_from=5)
        known = here.engine._model.described.known
        decisions = [here.recommend(f"u{number}", n=2, where={"attribute": "kind", "is": "k1"}).items for number in range(5)]
    for _ in range(2):
        with shop(tmp_path / "shop") as here:
            assert not here.engine.complaints
            model = here.engine._model
            assert model.described.known == known
            assert known[7] == Description({"kind": ["k1", "new"]}, 5.0, in_stock=False)
            assert model.described.having("kind", ["k1"], 200).sum() == 67
            assert model.described.between("price", 0, 9, 200).sum() == 9
        snapshots.remove_all(tmp_path / "shop")
    assert all(int(item.item[1:]) % 3 == 1 for items in decisions for item in items)
    assert main(["verify", str(tmp_path / "shop"), "--decisions"]) == 0


def test_a_decision_behind_a_description_knows_it(tmp_path: Path) -> None:
    """All of it waits before any of it is looked at."""
    with shop(tmp_path / "shop") as here:
        engine, drinks = here.engine, Where(attribute="category", is_="drinks")
        with engine._changed:
            futures: list[Any] = [
                engine.submit(UpsertItem("cup")),
                engine.submit(UpsertItem("tea", {"category": "drinks"})),
                engine.submit(Recommend("ann", where=drinks)),
                engine.submit(UpsertItem("tea", {"category": "gone"})),
                engine.submit(UpsertItem("mate", {"category": "drinks"})),
                engine.submit(Recommend("ann", where=drinks)),
            ]
        answers: list[Any] = [future.result() for future in futures]
        assert [answers[2].item, answers[5].item] == ["tea", "mate"]
    assert main(["verify", str(tmp_path / "shop"), "--decisions"]) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"attributes": {"price": math.nan}}, "a finite number"),
        ({"attributes": {"price": True}}, "a label, a list of labels"),
        ({"attributes": {"": "x"}}, "1 to 256"),
        ({"attributes": {"tags": ["a\n"]}}, "without control characters"),
        ({"attributes": {"tags": ["x"] * 65}}, "0 to 64"),
        ({"attributes": {f"a{number}": "x" for number in range(65)}}, "0 to 64"),
        ({"available_from": math.inf}, "seconds since 1970"),
        ({"available_until": "tomorrow"}, "seconds since 1970"),
        ({"available_from": 1795129060000}, "available_from is 1795129060000; accepted: seconds since 1970, not milliseconds"),
        ({"available_until": 1.0001e11}, "available_until is 100010000000.0; accepted: seconds since 1970, not milliseconds"),
        ({"available_from": 3000, "available_until": 3000}, "available from 3000.0 until 3000.0; accepted: an end after the beginning"),
        ({"in_stock": 1}, "true or false"),
    ],
)
def test_what_cannot_be_said_of_an_item_is_refused(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        with pytest.raises(BadValue, match=said):
            here.upsert_item("tea", **given)
        assert here.version().items == 0


def test_the_end_of_a_known_beginning_is_after_it(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        here.upsert_item("stollen", available_from=2000)
        with pytest.raises(BadValue, match=r"available from 2000\.0 until 1000\.0"):
            here.upsert_item("stollen", available_until=1000)
        here.upsert_item("stollen", available_from=None, available_until=1000)


def test_a_log_with_an_empty_time_opens_and_the_item_can_be_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, shop(tmp_path / "shop") as here:
        patch.setattr(catalogue, "check_window", lambda *_: None)  # as before there was such a check
        here.upsert_item("stollen", available_from=3000, available_until=2000)
    snapshots.remove_all(tmp_path / "shop")
    with shop(tmp_path / "shop") as here:
        here.upsert_item("stollen", in_stock=True)
        assert here.upsert_item("stollen", available_until=4000).seq > 1


def test_there_are_only_so_many_names(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        items = [UpsertItem(f"i{number}", {f"a{number}": "x"}) for number in range(MOST_NAMES + 1)]
        answers = here.ask(UpsertItems(items)).answers
        assert [getattr(answer, "code", "done") for answer in answers] == ["done"] * MOST_NAMES + ["bad-value"]
        with pytest.raises(BadValue, match=str(MOST_NAMES)):
            here.upsert_item("other", attributes={"other": "x"})
        here.upsert_item("i0", attributes={})
        here.upsert_item("other", attributes={"other": "x"})


def test_similar_items_point_in_the_same_direction(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        for number in range(60):
            user, item = number % 6, number % 8
            here.rate_item(f"u{user}", f"i{item}", 5 if user % 2 == item % 2 else 1)
        vectors = here.engine._model.agent.state.item_factors
        here.retire_item("i4")
        found = here.similar_items("i2", 3).items
        assert all(here_.similarity >= next_.similarity for here_, next_ in itertools.pairwise(found))
        best = int(found[0].item[1:])
        expected = vectors[2] @ vectors[best] / math.sqrt((vectors[2] @ vectors[2]) * (vectors[best] @ vectors[best]))
        assert found[0].similarity == pytest.approx(expected)
        assert "i4" not in {item.item for item in found}
        assert len(here.similar_items("i2", 100).items) == 6
        here.upsert_item("i6", in_stock=False)
        here.upsert_item("i0", available_until=1.0)
        assert sorted(item.item for item in here.similar_items("i2", 100).items) == ["i1", "i3", "i5", "i7"]
        with pytest.raises(UnknownItem):
            here.similar_items("nothing")
    with shop(tmp_path / "means", policy=ItemMean()) as means:
        means.upsert_item("tea")
        with pytest.raises(BadValue, match="keeps no vectors"):
            means.similar_items("tea")


def test_what_is_no_dictionary_is_refused(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        here.upsert_item("tea")
        wrong: Any
        for wrong in ("tea", 5, [("tea", 1)]):
            for name, ask in (
                ("where", lambda given: here.recommend("ann", where=given)),
                ("quotas", lambda given: here.recommend("ann", quotas=given)),
                ("fresh", lambda given: here.recommend("ann", fresh=given)),
                ("attributes", lambda given: here.upsert_item("tea", attributes=given)),
                ("events", here.set_rewards),
            ):
                with pytest.raises(BadValue, match=f"{name} is .*; accepted: a dictionary"):
                    ask(wrong)
        with pytest.raises(BadValue, match="fresh cannot be read"):
            here.recommend("ann", fresh={"share": 2})
        assert here.recommend("ann", fresh={"share": 0.5, "below": 3}).item == "tea"
