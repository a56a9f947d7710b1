"""For those who look: lists, one decision, the past and what would be agree with the log, and change nothing."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from albatross.service.api.errors import BadValue, UnknownDecision, UnknownItem
from albatross.service.api.requests import ListEvents, ListItems, ListUsers, LookBack, Suppose, Verify, ViewDecision, ViewUser
from albatross.service.engine.viewing.listing import leading_axes
from albatross.service.recommender import Recommender


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recommender]:
    with Recommender(tmp_path_factory.mktemp("looking") / "shop", scale=(1, 5), policy="alb") as opened:
        for number in range(30):
            opened.rate_item(f"user {number % 5}", f"item {number % 7}", 1 + number % 5)
        yield opened


def test_items_have_the_mean_of_their_ratings_and_how_often_they_were_shown(shop: Recommender) -> None:
    shown = shop.recommend("user 1", n=2)
    listed = {item.item: item for item in shop.ask(ListItems()).items}
    given = [1 + number % 5 for number in range(30) if number % 7 == 3]
    assert listed["item 3"].rating == pytest.approx(np.mean(given))
    assert listed["item 3"].ratings == len(given)
    assert sum(item.shown for item in listed.values()) >= len(shown.items)
    assert listed[shown.item].shown >= 1
    own = {item.item: item for item in shop.ask(ListItems(user="user 1")).items}
    best = shop.user("user 1", n=7).top
    assert {one.item: one.mean for one in best} == {name: item.mean for name, item in own.items()}


def test_a_list_goes_on_where_it_ended(shop: Recommender) -> None:
    first = shop.ask(ListItems(n=4))
    second = shop.ask(ListItems(n=4, after=first.next or 0))
    assert [item.item for item in [*first.items, *second.items]] == [f"item {number}" for number in range(7)]
    assert second.next is None
    assert shop.ask(ListItems(after=10**9)).items == []
    assert [user.user for user in shop.ask(ListUsers(search="USER 3")).users] == ["user 3"]


def test_events_are_the_log_backwards(shop: Recommender) -> None:
    head = shop.version().seq
    told = shop.ask(ListEvents(n=1000)).events
    assert [event.seq for event in told] == list(range(head, 0, -1))
    assert told[-1].kind == "genesis"
    assert shop.ask(ListEvents(before=1)).events == []


def test_a_decision_tells_what_was_close_and_what_came(shop: Recommender) -> None:
    decision = shop.recommend("user 2", n=2, explain=True, request_id="asked")
    assert decision.explanation is not None
    view = shop.ask(ViewDecision(decision.decision_id))
    assert [(one.item, one.score, one.rating) for one in view.items] == [(one.item, one.score, None) for one in decision.items]
    assert view.close == decision.explanation.close
    assert view.close_seq == decision.model_seq
    assert not {one.item for one in view.close} & {one.item for one in view.items}
    assert [one.score for one in view.close] == sorted((one.score for one in view.close), reverse=True)
    accepted = shop.rate(decision, 4.0, decision.items[1].item)
    assert [one.rating for one in shop.ask(ViewDecision(decision.decision_id)).items] == [None, 4.0]
    entry = shop.ask(ViewUser("user 2", 0, history=1)).history[0]
    assert (entry.seq, entry.rating, entry.decision_id) == (accepted.seq, 4.0, decision.decision_id)
    with pytest.raises(UnknownDecision):
        shop.ask(ViewDecision(decision.decision_id[:-1] + "x"))


def test_a_decision_that_was_not_explained_is_told_by_the_present_model(shop: Recommender) -> None:
    # An explanation that nobody can ask for again is not kept either.
    for decision in (shop.recommend("user 3"), shop.recommend("user 3", explain=True)):
        view = shop.ask(ViewDecision(decision.decision_id, n=3))
        assert view.close_seq == shop.version().seq
        assert view.explanation is None
        assert len(view.close) == 3


@pytest.mark.parametrize("policy", ["alb", "mean-field", "item-mean"])
def test_supposing_learns_nothing(policy: str, tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=policy) as shop:
        for number in range(12):
            shop.rate_item(f"user {number % 3}", f"item {number % 4}", 1 + number % 5)
        before = shop.version()
        low, high = (shop.ask(Suppose("user 0", "item 1", rating)) for rating in (1.0, 5.0))
        assert low.before == high.before == shop.user("user 0").top
        assert {one.item: one.mean for one in low.after}["item 1"] < {one.item: one.mean for one in high.after}["item 1"]
        assert shop.version() == before
        assert shop.user("user 0").top == low.before
        for wrong, error in ((Suppose("user 0", "nothing", 3.0), UnknownItem), (Suppose("user 0", "item 1", 9.0), BadValue)):
            with pytest.raises(error):
                shop.ask(wrong)


def test_the_past_is_what_it_was(tmp_path: Path) -> None:
    views, states = {}, {}
    with Recommender(tmp_path / "shop", scale=(1, 5)) as shop:
        for number in range(20):
            shop.rate_item("ann", f"item {number % 6}", 1 + number % 5)
            version = shop.version()
            views[version.seq], states[version.seq] = shop.user("ann", 5), version.state_id
        shop.snapshot()
        for seq in sorted(views, key=lambda seq: seq % 7):  # forwards and backwards
            past = shop.ask(LookBack(seq, "ann", 5))
            assert (past.seq, past.state_id, past.user) == (seq, states[seq], views[seq])
        assert shop.ask(LookBack(10**12)).seq == shop.version().seq
        assert shop.ask(LookBack(1, "ann")).user is None
        report = shop.ask(Verify())
        assert report.passed
        assert report.state_id == shop.version().state_id
        assert report.confirmed == [shop.version().seq]


def test_who_is_forgotten_is_gone_from_the_past(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5)) as shop:
        shop.rate_item("ann", "tea", 4)
        shop.rate_item("bob", "tea", 2)
        head = shop.version().seq
        assert shop.ask(LookBack(head, "ann")).user is not None
        shop.forget_user("ann")
        assert shop.ask(LookBack(head, "ann")).user is None
        assert {event.kind for event in shop.ask(ListEvents()).events} >= {"erased", "forget"}


def test_axes_do_not_depend_on_anything_but_the_vectors() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 5)) * [1, 5, 2, 1, 1]
    places = leading_axes(vectors, 50)
    assert places is not None
    assert places.points.var(axis=0)[0] > places.points.var(axis=0)[1]
    again = leading_axes(np.asfortranarray(vectors), 50)
    assert again is not None
    np.testing.assert_allclose(places.points, again.points)
    assert leading_axes(vectors[:, :1], 50) is None
