"""Reasons that people read: exact contributions, and words that follow from them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albatross import Recommender
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField
from albatross.service.api.answers import ItemExplanation
from albatross.service.api.errors import BadValue, EventReused
from albatross.service.engine.deciding import reasoning
from albatross.service.engine.learned.ledger import mean_rating


def two_tastes(folder: Path, policy: Any, **options: Any) -> Recommender:
    """Half of the users like even items, half odd ones. Nobody knows `stranger`, everybody likes `favourite`."""
    shop = Recommender(folder, scale=(1, 5), policy=policy, floor=0.0, **options)
    for round_ in range(2):
        for user in range(8):
            for item in range(6):
                if (user, item) not in ((0, 4), (0, 5)):
                    shop.rate_item(f"u{user}", f"i{item}", 5 if (user + item) % 2 == 0 else 1 + round_ * 0.5)
    return shop


def explained(shop: Recommender, user: str, item: str) -> ItemExplanation:
    explanation = shop.recommend(user, candidates=[item], explain=True).explanation
    assert explanation is not None
    return explanation.items[0]


@pytest.mark.parametrize("policy", [ALB(rank=2, ridge=0.1), MeanField(rank=2)], ids=["alb", "mean-field"])
def test_contributions_sum_to_the_mean(policy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with two_tastes(tmp_path / "shop", policy) as shop:
        agent = shop.engine._model.agent
        for most in (12, 2):
            monkeypatch.setattr(reasoning, "MOST_PARTS", most)
            for item in ("i4", "i5", "i0"):
                told = explained(shop, "u0", item)
                assert told.base is not None
                assert len(told.parts) == min(most, 4)
                assert told.base + sum(part.part for part in told.parts) + told.others == pytest.approx(told.mean, abs=1e-9)
        # Without any rating of their own, a stranger's mean is the base: of ALB zero, of mean-field what is thought of the item.
        told = explained(shop, "u0", "i4")
        stranger = agent.select(agent.n_users - 1, [4]).mean
        assert told.base == pytest.approx(stranger, abs=1e-6)
        assert {part.item: part.rating for part in told.parts}.items() <= {"i0": 5.0, "i1": 1.25, "i2": 5.0, "i3": 1.25}.items()


def test_contributions_of_clicks_are_all_that_makes_the_mean_differ_from_a_strangers(tmp_path: Path) -> None:
    """Clicks weigh by the noise of their items, in a contribution too."""
    with Recommender(tmp_path / "shop", scale=(0, 1), policy=MeanField(rank=2), floor=0.0) as shop:
        for user in range(12):
            for item in range(6):
                if (user, item) != (0, 5):
                    shop.rate_item(f"u{user}", f"i{item}", float(user < 2 * item))
        model = shop.engine._model
        told = explained(shop, "u0", "i5")
        # The base is the mean less all contributions. Only if these are right is it what is predicted for who has rated nothing.
        stranger = model.agent.select(model.agent.n_users - 1, [model.items.numbers["i5"]]).mean
        assert told.base == pytest.approx(stranger, abs=1e-9)


def test_words_follow_from_what_was_liked(tmp_path: Path) -> None:
    with two_tastes(tmp_path / "shop", MeanField(rank=2)) as shop:
        liked = explained(shop, "u0", "i4")
        assert liked.why[0].startswith("because you liked i"), liked
        assert {name for name in ("i0", "i2") if name in liked.why[0]} == {"i0", "i2"}
        assert explained(shop, "u0", "brand new").why == ["new, so we try it"]
        stranger = explained(shop, "nobody", "i4")
        assert (stranger.base, stranger.parts) == (None, [])
        for user in range(8):
            shop.rate_item(f"u{user}", "favourite", 5)
        assert "popular with everybody" in explained(shop, "somebody else", "favourite").why
        assert explained(shop, "nobody at all", "i1").why == ["the best guess so far"]


@pytest.mark.parametrize("policy", [ALB(rank=2, ridge=0.1), MeanField(rank=2)], ids=["alb", "mean-field"])
@pytest.mark.parametrize("level", [True, "reasons"])
def test_no_item_is_the_reason_for_itself(level: Any, policy: Any, tmp_path: Path) -> None:
    with two_tastes(tmp_path / "shop", policy) as shop:

        def why(user: str, item: str) -> list[str]:
            told = shop.recommend(user, candidates=[item], explain=level).explanation
            assert told is not None
            return told.items[0].why

        liked = why("u1", "i5")
        assert liked[0] == "you liked it before"
        assert liked[1] in ("because you liked i1", "because you liked i3")
        for item in ("i0", "i2"):
            assert not any(item in sentence.split() or "liked it before" in sentence for sentence in why("u1", item))


def test_the_mean_of_all_ratings_follows_replacements_growth_and_restarts(tmp_path: Path) -> None:
    given: dict[str, float] = {}
    with Recommender(tmp_path / "shop", scale=(0, 5), policy=ItemMean(), events={"click": 1.0, "purchase": 5.0}) as shop:
        for number in range(80):  # more users and items than there is room for at first
            shop.rate_item(f"u{number}", f"i{number}", number % 6)
            given[f"u{number}"] = number % 6
        decision = shop.recommend("u1", candidates=["i2"])
        for event in ("click", "purchase"):
            shop.report(decision, event)
        given["decision"] = 5.0
        average = mean_rating(shop.engine._model.ledger)
        assert average == pytest.approx(np.mean(list(given.values())))
    with Recommender(tmp_path / "shop") as shop:  # from its snapshot
        assert mean_rating(shop.engine._model.ledger) == average
    for snapshot in (tmp_path / "shop" / "snapshots").iterdir():
        snapshot.unlink()
    with Recommender(tmp_path / "shop") as shop:  # from its log
        assert mean_rating(shop.engine._model.ledger) == average


@pytest.mark.parametrize("policy", [ALB(rank=2, ridge=0.1), MeanField(rank=2), ItemMean()], ids=["alb", "mean-field", "item-mean"])
def test_reasons_alone_are_those_of_the_whole_explanation(policy: Any, tmp_path: Path) -> None:
    with two_tastes(tmp_path / "shop", policy) as shop:
        for user, item in (("u0", "i4"), ("u0", "i5"), ("u3", "i1"), ("u0", "brand new"), ("nobody", "i4")):
            whole = explained(shop, user, item)
            told = shop.recommend(user, candidates=[item], explain="reasons").explanation
            assert told is not None
            assert (told.ellipsoid, told.close, told.pending) == (None, [], [])
            (only,) = told.items
            assert (only.why, only.base, only.own_ratings, only.item_ratings) == (
                whole.why,
                whole.base,
                whole.own_ratings,
                whole.item_ratings,
            )
            assert [part for part in whole.parts if part in only.parts] == only.parts
            said = [item, *" ".join(only.why).split()]
            assert all(part.item in said for part in only.parts) or whole.why == ["new, so we try it"]
            if only.base is not None:
                assert only.base + sum(part.part for part in only.parts) + only.others == pytest.approx(only.mean, abs=1e-9)


def test_a_level_of_explanation_that_is_none_is_refused(tmp_path: Path) -> None:
    with two_tastes(tmp_path / "shop", ALB(rank=2)) as shop:
        for user in ("u0", "nobody"):
            with pytest.raises(BadValue, match="explain is 'words'; accepted: true, false, reasons"):
                shop.recommend(user, explain="words")  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [True, "reasons"])
def test_an_explanation_is_kept_with_its_decision(level: Any, tmp_path: Path) -> None:
    with two_tastes(tmp_path / "shop", ALB(rank=2)) as shop:
        first = shop.recommend("u1", 2, explain=level, request_id="r")
        other: Any = "reasons" if level is True else True
        with pytest.raises(EventReused):
            shop.recommend("u1", 2, explain=other, request_id="r")
    with Recommender(tmp_path / "shop") as shop:
        assert shop.recommend("u1", 2, explain=level, request_id="r") == first


def test_a_policy_that_does_not_take_its_mean_apart_has_words_alone(tmp_path: Path) -> None:
    with two_tastes(tmp_path / "shop", ItemMean()) as shop:
        for user in range(4):
            shop.rate_item(f"u{user}", "favourite", 5)
        told = explained(shop, "u0", "favourite")
        assert (told.base, told.parts, told.others) == (None, [], 0.0)
        assert told.why == ["popular with everybody"]


def test_chance_is_said_to_be_chance(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ALB(rank=2), floor=1.0) as shop:
        for user in range(5):
            shop.rate_item(f"u{user}", "tea", 3)
        assert explained(shop, "ann", "tea").why == ["shown by chance, so that we learn"]
        assert np.isfinite(explained(shop, "u0", "tea").mean)


def test_what_satisfies_a_condition_is_explained_to_the_last_item(tmp_path: Path) -> None:
    """More places than items: nothing is left that could have been close."""
    with two_tastes(tmp_path / "shop", ALB(rank=2)) as shop:
        for item in range(3):
            shop.upsert_item(f"i{item}", attributes={"category": "tea"})
        tea = {"attribute": "category", "is": "tea"}
        everything = shop.recommend("u1", 5, where=tea, explain=True).explanation
        assert everything is not None
        assert (len(everything.items), everything.close) == (3, [])
        one = shop.recommend("u1", where=tea, explain=True).explanation
        assert one is not None
        assert {one.items[0].item, *(close.item for close in one.close)} == {"i0", "i1", "i2"}
