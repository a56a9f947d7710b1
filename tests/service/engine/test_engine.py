"""Answers of an engine: the items shown, their probabilities, and what it refuses."""

import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import Place

from albatross import Recommender
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField
from albatross.policies.oracle import Oracle
from albatross.policies.pts import PTS
from albatross.policies.random import Random
from albatross.service.api.answers import Accepted, Refusal
from albatross.service.api.errors import (
    BadValue,
    EventInFlight,
    EventReused,
    NoEligibleCandidate,
    NotReady,
    Overloaded,
    Refused,
    UnknownDecision,
    UnknownItem,
    UnknownUser,
)
from albatross.service.api.requests import (
    AskVersion,
    Feedback,
    FeedbackBatch,
    ForgetUser,
    Recommend,
    RestoreItem,
    RetireItem,
    UpsertItem,
    ViewUser,
)
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.storage.snapshots import remove_all

ITEMS = tuple(f"i{number}" for number in range(8))


def shop(place: Path | Place, name: str = "shop", **options: Any) -> Engine:
    engine = Engine(place / name, Options(**{"scale": (1, 5), "policy": ALB(rank=2), "items": ITEMS, "snapshot_every": 0, **options}))
    engine.wait_ready()
    return engine


def names(answer: Any) -> list[str]:
    return [shown.item for shown in answer.items]


def test_another_process_is_refused_with_a_sentence(tmp_path: Path) -> None:
    program = f"from albatross import Recommender\nRecommender({str(tmp_path / 'shop')!r}, scale=(1, 5))"
    with shop(tmp_path):
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "is in use by process" in run.stderr
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_a_folder_began_with_cannot_be_changed(place: Place) -> None:
    shop(place, seed=3).close()
    for options in (Options(scale=(1, 10)), Options(policy=ALB(rank=3)), Options(policy=PTS()), Options(seed=4), Options(floor=0.5)):
        with pytest.raises(InvalidInput, match="accepted: that of"):
            Engine(place / "shop", options)
    with Engine(place / "shop", Options(policy=ALB(rank=2), seed=3, floor=0.05)) as engine:
        engine.wait_ready()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": (5, 1)},
        {"scale": (1, float("nan"))},
        {"scale": (1, 5), "policy": Random()},
        {"scale": (1, 5), "policy": Oracle()},
        {"scale": (1, 5), "floor": 2.0},
        {"scale": (1, 5), "durability": "maybe"},
        {"scale": (1, 5), "items": ("a", "a")},
    ],
)
def test_a_folder_that_cannot_be_made_is_not_made(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        Engine(tmp_path / "shop", Options(**options))
    assert not (tmp_path / "shop").exists()


def test_retired_items_are_never_shown_and_come_back(place: Place) -> None:
    with shop(place) as engine:
        for item in ("i0", "i5"):
            assert engine.ask(RetireItem(item)).retired
        for number in range(20):
            assert not {"i0", "i5"} & set(names(engine.ask(Recommend(f"u{number}", n=8))))
        assert names(engine.ask(Recommend("ann", candidates=["i0", "i1"]))) == ["i1"]
        for candidates, counted in ((["i0", "i5"], "2 candidates"), (["i5"], "1 candidate")):
            with pytest.raises(NoEligibleCandidate, match=f"of {counted}, nothing is left"):
                engine.ask(Recommend("ann", candidates=candidates))
        assert engine.ask(Feedback("e", 3, user="ann", item="i0")).applied  # what was shown before may still be rated
        assert not engine.ask(RestoreItem("i0")).retired
        assert not engine.ask(UpsertItem("i5")).created
        assert len(names(engine.ask(Recommend("ann", n=100)))) == 8
        with pytest.raises(UnknownItem):
            engine.ask(RetireItem("nothing"))


def test_the_catalogue_opens_by_itself_or_by_upsert_only(place: Place) -> None:
    with shop(place, "open", items=()) as engine:
        with pytest.raises(NoEligibleCandidate):
            engine.ask(Recommend("ann"))
        assert names(engine.ask(Recommend("ann", candidates=["tea"]))) == ["tea"]
        assert engine.ask(Feedback("e", 3, user="bob", item="mate")).applied
        assert sorted(names(engine.ask(Recommend("ann", n=9)))) == ["mate", "tea"]
    with shop(place, "closed", items=(), closed=True) as engine:
        with pytest.raises(NoEligibleCandidate):
            engine.ask(Recommend("ann", candidates=["tea"]))
        with pytest.raises(UnknownItem):
            engine.ask(Feedback("e", 3, user="bob", item="mate"))
        assert engine.ask(UpsertItem("tea")).created
        assert names(engine.ask(Recommend("ann", candidates=["tea", "mate"], n=9))) == ["tea"]


def test_what_is_excluded_is_not_shown(tmp_path: Path) -> None:
    with shop(tmp_path, floor=1.0) as engine:
        engine.ask(Feedback("e1", 5, user="ann", item="i0"))
        assert set(names(engine.ask(Recommend("bob", n=8, exclude=["i0", "i7", "never heard of"])))) == {*ITEMS} - {"i0", "i7"}
        engine.ask(Recommend("ann", candidates=["i1"]))
        assert set(names(engine.ask(Recommend("ann", n=8, exclude_seen="pending")))) == {*ITEMS} - {"i0", "i1"}
        assert set(names(engine.ask(Recommend("ann", n=8, exclude_seen="rated")))) == {*ITEMS} - {"i0"}
        assert set(names(engine.ask(Recommend("ann", n=8, exclude_seen="none")))) == {*ITEMS}
        with pytest.raises(NoEligibleCandidate):  # now everything else is waited for
            engine.ask(Recommend("ann", exclude_seen="pending"))


def test_a_slate_has_conditional_propensities(tmp_path: Path) -> None:
    """Given the items before it, the best of the rest has 1 − floor and its share of the floor; any other, its share alone."""
    floor = 0.4
    with shop(tmp_path, floor=floor) as engine:
        for number in range(30):
            engine.ask(Feedback(f"e{number}", 1 + number % 5, user="ann", item=ITEMS[number % 8]))
        counts: Counter[bool] = Counter()
        for number in range(60):
            shown = engine.ask(Recommend(f"stranger {number}", n=8)).items
            assert sorted(item.item for item in shown) == sorted(ITEMS)
            for rank, item in enumerate(shown):
                left = 8 - rank
                best = item.score == max(other.score for other in shown[rank:])
                counts[best] += 1
                assert item.rank == rank + 1
                assert item.score == pytest.approx(item.mean + item.bonus)
                assert item.propensity == pytest.approx(floor / left + (1 - floor) * best)
        assert counts[False] > 50
        assert counts[True] > 200


def test_propensities_are_frequencies(tmp_path: Path) -> None:
    with shop(tmp_path, floor=0.5) as engine:
        decisions = [future.result() for future in [engine.submit(Recommend(f"u{number}")) for number in range(2000)]]
    shares = Counter(decision.item for decision in decisions)
    told = {decision.item: decision.items[0].propensity or 0.0 for decision in decisions}
    assert sum(told.values()) == pytest.approx(1.0)
    for item, propensity in told.items():
        assert abs(shares[item] / 2000 - propensity) < 4 * np.sqrt(propensity / 2000)


def test_propensities_are_told_where_all_items_are_equal(tmp_path: Path) -> None:
    """Before the first rating mean-field draws among equals: each item is as likely as any other, whichever way it was chosen."""
    with shop(tmp_path, policy=MeanField(rank=2), floor=0.5) as engine:
        decisions = [engine.ask(Recommend(f"u{number}")) for number in range(40)]
    assert all(decision.items[0].propensity == pytest.approx(1 / len(ITEMS)) for decision in decisions)


def test_what_waits_for_a_rating_shrinks_the_width_and_not_the_mean(tmp_path: Path) -> None:
    with shop(tmp_path, floor=0.0) as engine:
        for number in range(20):
            engine.ask(Feedback(f"e{number}", 1 + number % 5, user="ann", item=ITEMS[number % 4]))
        first = {item.item: item for item in engine.ask(Recommend("ann", n=8, request_id="first")).items}
        second = {item.item: item for item in engine.ask(Recommend("ann", n=8)).items}
        for item in ITEMS:
            assert second[item].mean == pytest.approx(first[item].mean, abs=1e-9)
            assert second[item].bonus < first[item].bonus
        before = engine.ask(AskVersion()).state_id
        engine.ask(FeedbackBatch([Feedback(f"f{item}", 3, user="ann", item=item) for item in ITEMS]))
        assert engine.ask(ViewUser("ann")).pending == []
        assert engine.ask(AskVersion()).state_id != before


def test_a_policy_without_an_ellipsoid_does_not_show_what_waits(tmp_path: Path) -> None:
    with shop(tmp_path, policy=ItemMean(), floor=0.0) as engine:
        shown = [engine.ask(Recommend("ann")).item for _ in range(8)]
        assert sorted(shown) == sorted(ITEMS)
        assert engine.ask(Recommend("ann")).item in ITEMS  # everything waits: then anything


def test_the_same_request_gives_the_same_decision(place: Place) -> None:
    request = Recommend("ann", n=3, explain=True, request_id="r")
    with shop(place) as engine:
        futures = [engine.submit(request) for _ in range(5)]
        first = futures[0].result()
        assert all(future.result() == first for future in futures)
        engine.ask(Feedback("e", 3, decision_id=first.decision_id, item=first.item))
        assert engine.ask(AskVersion()).decisions == 1
        with pytest.raises(EventReused):
            engine.ask(Recommend("ann", n=2, request_id="r"))
    with Engine(place / "shop") as engine:
        engine.wait_ready()
        assert engine.ask(request) == first


def test_an_explanation_adds_up(tmp_path: Path) -> None:
    with shop(tmp_path, floor=0.0) as engine:
        for number in range(12):
            engine.ask(Feedback(f"e{number}", 1 + number % 5, user="ann", item=ITEMS[number % 3]))
        decision = engine.ask(Recommend("ann", n=2, explain=True))
        explanation = decision.explanation
        assert explanation is not None
        assert (explanation.user_ratings, decision.user_ratings) == (12, 12)
        for shown, item in zip(decision.items, explanation.items, strict=True):
            assert item.mean + item.bonus == pytest.approx(item.score)
            assert (item.item, item.score) == (shown.item, shown.score)
            assert item.width == pytest.approx(item.bonus)
            assert item.width is not None
            assert item.width_after is not None
            assert item.width_after < item.width
            assert item.own_ratings == item.item_ratings == (4 if item.item in ITEMS[:3] else 0)
        space = explanation.ellipsoid
        assert space is not None
        axes, values = np.array(space.axes), np.array(space.eigenvalues)
        assert np.allclose(axes @ axes.T, np.eye(2))
        assert (values >= 1.0 - 1e-9).all()  # the ridge
        view = engine.ask(ViewUser("ann", 3))
        assert view.ellipsoid == space
        assert len(view.top) == 3
        with pytest.raises(UnknownUser):
            engine.ask(ViewUser("nobody"))


def test_a_rating_must_fit_its_decision(place: Place) -> None:
    with shop(place) as engine:
        one, two = engine.ask(Recommend("ann")), engine.ask(Recommend("ann", n=2))
        bad: list[tuple[type[Refused], Feedback]] = [
            (BadValue, Feedback("x", 3, two.decision_id)),
            (BadValue, Feedback("x", 3, one.decision_id, item="elsewhere")),
            (BadValue, Feedback("x", 3, one.decision_id, user="bob")),
            (BadValue, Feedback("x", 3, user="ann")),
            (UnknownDecision, Feedback("x", 3, "17-00000000")),
            (UnknownDecision, Feedback("x", 3, one.decision_id[:-1] + "x")),
            (UnknownDecision, Feedback("x", 3, "²-x")),
            *((BadValue, Feedback("x", rating, one.decision_id)) for rating in (0.9, 5.1, float("nan"), float("inf"), True)),
            *((BadValue, Feedback(name, 3, one.decision_id)) for name in ("", "x" * 257, "a\nb", "\udc80")),
        ]
        for error, event in bad:
            with pytest.raises(error):
                engine.ask(event)
        answers = engine.ask(FeedbackBatch([event for _, event in bad] + [Feedback("y", 3, one.decision_id)])).answers
        refused = [answer for answer in answers[:-1] if isinstance(answer, Refusal)]
        assert [refusal.status for refusal in refused] == [error.status for error, _ in bad]
        assert isinstance(answers[-1], Accepted)
        assert engine.ask(AskVersion()).ratings == 1


def held(engine: Engine) -> threading.Event:
    """Holds the owner thread in a callback, so that what comes next has to wait until the event is set."""
    while True:
        reached, gate = threading.Event(), threading.Event()
        holders: list[bool] = []

        def hold(_: "Future[Any]", reached: threading.Event = reached, gate: threading.Event = gate, holders: list[bool] = holders) -> None:
            # The callback of a request that was answered already runs in the thread that adds it: then try again.
            holders.append(threading.current_thread() is not threading.main_thread())
            reached.set()
            if holders[0]:
                gate.wait()

        engine.submit(AskVersion()).add_done_callback(hold)
        reached.wait()
        if holders[0]:
            return gate


def test_overload_is_refused_at_once_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with shop(tmp_path, queue=5) as engine:
        gate = held(engine)
        waiting = [engine.submit(Feedback(f"e{number}", 3, user="ann", item="i1")) for number in range(5)]
        with pytest.raises(Overloaded):
            engine.submit(Feedback("e5", 3, user="ann", item="i1"))
        assert engine.readiness.waiting == 5
        gate.set()
        assert [future.result().applied for future in waiting] == [True] * 5
        assert engine.ask(Feedback("e5", 3, user="ann", item="i1")).applied


def test_the_same_event_in_flight_is_refused(tmp_path: Path) -> None:
    with shop(tmp_path) as engine:
        gate = held(engine)
        first = engine.submit(Feedback("e", 3, user="ann", item="i1"))
        with pytest.raises(EventInFlight):
            engine.submit(Feedback("e", 3, user="ann", item="i1"))
        cancelled = engine.submit(Feedback("never", 3, user="ann", item="i1"))
        assert cancelled.cancel()
        gate.set()
        assert not first.result().duplicate
        assert engine.ask(AskVersion()).ratings == 1
        assert not engine.ask(Feedback("never", 3, user="ann", item="i1")).duplicate


def test_closing_answers_what_waits(place: Place) -> None:
    engine = shop(place)
    gate = held(engine)
    waiting = [engine.submit(Feedback(f"e{number}", 3, user="ann", item="i1")) for number in range(50)]
    closing = threading.Thread(target=engine.close)
    closing.start()
    gate.set()
    assert all(future.result().applied for future in waiting)
    closing.join()
    with pytest.raises(NotReady):
        engine.submit(AskVersion())
    assert engine.readiness.phase == "closed"


def test_closing_while_somebody_is_forgotten_leaves_a_sound_folder(place: Place) -> None:
    engine = shop(place)
    for number in range(30):
        engine.ask(Feedback(f"e{number}", 3, user=f"u{number % 3}", item="i1"))
    gate = held(engine)
    forgotten = engine.submit(ForgetUser("u1"))
    closing = threading.Thread(target=engine.close)
    closing.start()
    gate.set()
    assert forgotten.result().events == 10
    closing.join()
    with Engine(place / "shop") as engine:
        engine.wait_ready()
        with_snapshot = engine.ask(AskVersion())
        assert with_snapshot.ratings == 20
    remove_all((place / "shop").folder)
    with Engine(place / "shop") as engine:
        engine.wait_ready()
        assert engine.ask(AskVersion()) == with_snapshot


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5), st.floats(allow_nan=True)), min_size=1, max_size=10))
def test_any_text_and_number_is_kept_exactly_or_refused(shared: Recommender, triples: list[tuple[str, str, float]]) -> None:
    for user, item, rating in triples:
        before = shared.version().ratings
        try:
            shared.rate_item(user, item, rating)
        except BadValue:
            assert shared.version().ratings == before
        else:
            assert shared.version().ratings == before + 1
            assert shared.user(user).user == user
            assert shared.recommend(user, candidates=[item]).item == item


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Recommender(tmp_path_factory.mktemp("any") / "shop", scale=(-1e6, 1e6), policy=ALB(rank=2)) as recommender:
        yield recommender
