"""A long batch is served in slices: others are answered in between, and its answers are those of one batch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from albatross import Recommender
from albatross.policies.item_mean import ItemMean
from albatross.service.api.answers import Accepted, Refusal
from albatross.service.api.errors import BadValue, DiskFull
from albatross.service.api.requests import AskVersion, Feedback, FeedbackBatch, UpsertItem, UpsertItems
from albatross.service.api.values import MOST_EVENTS
from albatross.service.engine.group import Group
from albatross.service.engine.slicing import SLICE

LENGTH = 2 * SLICE + 7


def shop(folder: Path) -> Recommender:
    return Recommender(folder, scale=(1, 5), policy=ItemMean())


def ratings(*numbers: int) -> FeedbackBatch:
    return FeedbackBatch([Feedback(f"e{number}", 3.0, user=f"u{number}", item=f"i{number}") for number in numbers])


def groups(monkeypatch: pytest.MonkeyPatch, before: Callable[[list[Any]], None]) -> list[list[int]]:
    """The weights of all groups that an engine makes from now on. `before` is called with the requests of each."""
    made: list[list[int]] = []
    run = Group.run

    def watched(self: Group, tickets: Any, *handlers: Any) -> None:
        made.append([ticket.weight for ticket in tickets])
        before([ticket.request for ticket in tickets])
        run(self, tickets, *handlers)

    monkeypatch.setattr(Group, "run", watched)
    return made


@pytest.mark.parametrize(
    "batch", [ratings(*range(LENGTH)), UpsertItems([UpsertItem(f"i{number}") for number in range(LENGTH)])], ids=["ratings", "items"]
)
def test_others_are_answered_between_the_slices(batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path / "shop") as here:
        asked: list[Any] = []

        def ask(requests: list[Any]) -> None:
            if not asked:
                asked.append(here.engine.submit(AskVersion("none")))

        made = groups(monkeypatch, ask)
        answers = here.ask(batch).answers
        assert made == [[SLICE], [1, SLICE], [7]]
        assert asked[0].result().items == 2 * SLICE
        assert len(answers) == LENGTH
        assert [answer.seq for answer in answers] == sorted({answer.seq for answer in answers})
        assert here.version().items == LENGTH


def test_a_batch_counts_each_event_once_across_its_slices(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        answers = here.ask(ratings(*range(LENGTH), 0, 1)).answers
        assert [answer.duplicate for answer in answers if isinstance(answer, Accepted)] == [False] * LENGTH + [True] * 2
        assert here.version().ratings == LENGTH


def test_what_was_done_before_a_slice_was_refused_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path / "shop") as here:
        places = iter(range(3))

        def fill_the_disk(requests: list[Any]) -> None:
            if next(places) == 1:
                monkeypatch.setattr(here.engine._store, "append", full)

        def full(*_: Any) -> None:
            raise DiskFull("no space")

        groups(monkeypatch, fill_the_disk)
        answers = here.ask(ratings(*range(LENGTH))).answers
        assert [isinstance(answer, Accepted) for answer in answers] == [True] * SLICE + [False] * (LENGTH - SLICE)
        assert answers[-1] == Refusal(507, "disk-full", "no space")


def test_a_batch_that_is_too_long_is_refused_as_a_whole(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        with pytest.raises(BadValue, match=str(MOST_EVENTS)):
            here.ask(ratings(*range(MOST_EVENTS + 1)))
        assert here.version().ratings == 0


def test_a_service_that_closes_finishes_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = shop(tmp_path / "shop")
    groups(monkeypatch, lambda _: here.engine._standing.drain())
    batch = here.engine.submit(ratings(*range(LENGTH)))
    here.close()
    assert len(batch.result().answers) == LENGTH
