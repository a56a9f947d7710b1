"""Written, then applied: wherever a commit is cut, the model is what the log says, and nothing else."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from places import Place

from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.service.api.errors import DiskFull, NoEligibleCandidate, StorageFailed
from albatross.service.api.requests import (
    AskVersion,
    Feedback,
    FeedbackBatch,
    Recommend,
    Request,
    RetireItem,
    SetRewards,
    UpsertItem,
    ViewUser,
)
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.recovering.recovery import recover
from albatross.service.storage.home import Home, home_of
from albatross.service.storage.mark import Mark
from albatross.service.storage.reading import read_genesis
from albatross.service.storage.sqlite.log import SQLiteLog

OPTIONS = Options(scale=(1, 5), policy=ALB(rank=2), snapshot_every=0, events={"click": 1.0, "purchase": 5.0})
WRITING: list[Request[Any]] = [
    Recommend("u1", n=2),
    Recommend("stranger", candidates=[f"new{number}" for number in range(100)], request_id="r"),
    UpsertItem("cake"),
    RetireItem("i1"),
    Recommend("u1", exclude_seen="pending"),
    FeedbackBatch([Feedback(f"b{number}", 1 + number % 5, user=f"v{number}", item=f"late{number % 70}") for number in range(90)]),
    Feedback("single", 3, user="u2", item="i2"),
    SetRewards({"click": 2, "purchase": 5}),
    UpsertItem("cake", {"kind": ["sweet"], "price": 3}, in_stock=False),
    UpsertItem("cake", available_until=1e9),
]
"""One group of everything that writes; users and items outgrow the room there is."""
EVENTS = ("click", "purchase")
"""Of a decision, behind all that: the second takes the place of the first."""


class CutError(sqlite3.OperationalError):
    """The disk is full."""

    sqlite_errorname = "SQLITE_FULL"


class Cutting:
    """A connection to SQLite that fails at one of its statements."""

    def __init__(self, connection: sqlite3.Connection, cut: int, error: sqlite3.Error) -> None:
        self.connection, self.cut, self.error = connection, cut, error
        self.statements = 0

    def _count(self) -> None:
        self.statements += 1
        if self.statements == self.cut:
            raise self.error

    def execute(self, statement: str, *arguments: Any) -> Any:
        if statement.startswith(("BEGIN", "INSERT", "UPDATE", "COMMIT")):
            self._count()
        return self.connection.execute(statement, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


@contextmanager
def lively(home: Path | Home) -> Iterator[Engine]:
    with Engine(home, OPTIONS) as engine:
        engine.wait_ready()
        engine.ask(
            FeedbackBatch([Feedback(f"e{number}", 1 + number % 5, user=f"u{number % 5}", item=f"i{number % 7}") for number in range(30)])
        )
        engine.ask(Recommend("u1", request_id="waits"))
        yield engine


def known(where: Path | Home) -> tuple[Any, ...]:
    """What the log alone says, without the serving engine."""
    home = home_of(where) if isinstance(where, Path) else where
    with home.reading() as log:
        model = recover(home.folder, log, read_genesis(log, str(home)), use_snapshots=False).model
        return (log.head.seq, *facts_of(model))


def facts_of(model: Any) -> tuple[Any, ...]:
    return (
        model.state_id,
        model.seq,
        model.users.names,
        model.items.names,
        model.retired,
        model.pending,
        model.ratings,
        model.decisions,
        (model.agent.n_users, model.agent.n_items),
        model.ledger.item_ratings.tolist(),
        model.series.series(),
        dict(model.rewards),
        model.described.known,
    )


def in_one_group(engine: Engine) -> list[Any]:
    """Submit everything at once, behind a request that holds the owner thread until all of it waits."""
    gathered = engine._changed
    decision = engine.ask(Recommend("u1", request_id="waits")).decision_id
    events = [Feedback(event, None, decision, event=event) for event in EVENTS]
    with gathered:  # the owner thread cannot take anything while this is held
        futures = [engine.submit(request) for request in (*WRITING, *events)]
    return [future.exception() for future in futures]


def test_wherever_the_commit_is_cut_the_model_is_what_the_log_says(tmp_path: Path) -> None:
    cut, cuts = 0, 0
    with lively(tmp_path / "shop") as engine:
        store = engine._store
        assert isinstance(store, SQLiteLog)
        connection = store._connection
        while True:
            cut += 1
            before = known(engine.home)
            cutting = Cutting(connection, cut, CutError("full"))
            store._connection = cutting  # type: ignore[assignment]
            errors = in_one_group(engine)
            store._connection = connection
            assert (store.head.seq, *facts_of(engine._model)) == known(engine.home)
            if errors == [None] * (len(WRITING) + len(EVENTS)):
                break
            assert all(isinstance(error, DiskFull) for error in errors)
            assert known(engine.home) == before
            cuts += 1
        assert engine._model.agent.n_items > 64
    assert cuts > 5
    assert known(tmp_path / "shop")[1] != before[1]


@pytest.mark.parametrize("cut", range(1, 9))
def test_after_a_commit_of_unknown_outcome_a_start_finds_the_log(cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fails in the middle of a commit, or after it and before the mark: everybody is told, and nothing is served from memory."""
    failures: list[BaseException] = []
    folder = tmp_path / "shop"
    with lively(folder) as engine:
        engine._on_failure = failures.append
        before = known(folder)
        store = engine._store
        assert isinstance(store, SQLiteLog)
        if cut == 8:

            def fail(self: Mark, head: object, content: object) -> bool:
                raise StorageFailed("the mark was not synchronised")

            monkeypatch.setattr(Mark, "add", fail)
        else:
            store._connection = Cutting(store._connection, cut, sqlite3.OperationalError("disk I/O error"))  # type: ignore[assignment]
        errors = in_one_group(engine)
        assert all(isinstance(error, StorageFailed) for error in errors)
        monkeypatch.undo()
    assert len(failures) == 1
    after = known(folder)
    assert (after == before) == (cut != 8)  # what was committed and not acknowledged stays
    with Engine(folder, replace(OPTIONS, events=None)) as engine:
        engine.wait_ready()
        assert (engine._store.head.seq, *facts_of(engine._model)) == after


def test_a_refused_decision_changes_nothing(place: Place) -> None:
    """Neither the items, nor the capacity of the arrays, nor the decisions that await ratings."""
    with lively(place / "shop") as engine:
        before = known(engine.home)
        names = [f"never{number}" for number in range(200)]
        for candidates in (names, [*names, "i1"]):
            with pytest.raises(NoEligibleCandidate):
                engine.ask(Recommend("u1", candidates=candidates, exclude=candidates))
        with pytest.raises(InvalidInput):
            engine.ask(Recommend("u1", candidates=[*names, ""]))
        assert (engine._store.head.seq, *facts_of(engine._model)) == known(engine.home) == before
        assert engine.ask(ViewUser("u1")).ratings == 6
        # The same with something left to show: then the items exist.
        assert engine.ask(Recommend("u1", candidates=[*names, "i1"], exclude=names)).item == "i1"
        assert engine.ask(AskVersion()).items == 7 + 200
    assert known(place / "shop")[4][-1] == "never199"


def test_decisions_of_one_group_see_each_other(place: Place) -> None:
    """Through the overlay: what is shown first is waited for, what is retired is not shown, what is new can be."""
    with lively(place / "shop") as engine:
        with engine._changed:
            first, second = (engine.submit(Recommend("u3", candidates=["x", "y"], exclude_seen="pending")) for _ in range(2))
            retired = engine.submit(RetireItem("z"))
            made = engine.submit(UpsertItem("z"))
            gone = engine.submit(RetireItem("z"))
            left = engine.submit(Recommend("u4", candidates=["z", "w"]))
            again = engine.submit(UpsertItem("z"))
        assert {first.result().item, second.result().item} == {"x", "y"}
        assert isinstance(retired.exception(), InvalidInput)
        assert (made.result().created, gone.result().retired, again.result().retired) == (True, True, False)
        assert left.result().item == "w"
        assert (engine._store.head.seq, *facts_of(engine._model)) == known(engine.home)
