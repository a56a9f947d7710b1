"""Disks that are full or that fail: never an acknowledgement of what was not kept, and a clean restart."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from failing import Switch
from places import Place

from albatross.policies.alb import ALB
from albatross.service.api.errors import DiskFull, StorageFailed
from albatross.service.api.requests import AskSeries, AskVersion, Feedback, Recommend, RetireItem, UpsertItem, ViewUser
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.storage.sqlite.log import SQLiteLog

OPTIONS = Options(scale=(1, 5), policy=ALB(rank=2), snapshot_every=0)
FILLING = """
import resource, signal, sys
from albatross import Recommender
from albatross.service.api.errors import DiskFull
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
shop = Recommender(sys.argv[1], scale=(1, 5))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
kept = 0
for number in range(5000):
    try:
        shop.rate_item(f"user{number}", f"item{number % 50}", 3, event_id=f"event{number}")
    except DiskFull:
        break
    kept += 1
refused = 0
for number in range(5000, 5010):
    try:
        shop.rate_item("x" * 200, "y" * 200, 3, event_id=f"event{number}")
    except DiskFull:
        refused += 1
print(kept, refused, shop.version().ratings, shop.user("user0").ratings, flush=True)
import os
os.kill(os.getpid(), 9)
"""


def test_a_full_disk_acknowledges_nothing_and_reading_goes_on(place: Place) -> None:
    switch = Switch()
    with Engine(place / "shop", OPTIONS, open_store=switch.store()) as engine:
        engine.wait_ready()
        for number in range(10):
            engine.ask(Feedback(f"e{number}", 4, user="ann", item=f"i{number % 4}"))
        before, series = engine.ask(AskVersion()), engine.ask(AskSeries())
        switch.error = DiskFull("no room")
        writing = [
            Feedback("lost", 1, user="bob", item="new"),
            Recommend("ann"),
            Recommend("eve", candidates=[f"other{number}" for number in range(100)]),
            UpsertItem("more"),
            RetireItem("i1"),
        ]
        for future in [engine.submit(request) for request in writing]:
            with pytest.raises(DiskFull):
                future.result()
        assert engine.ask(AskVersion()) == before
        assert engine.ask(AskSeries()) == series
        view = engine.ask(ViewUser("ann"))
        assert view.pending == []
        assert {shown.item for shown in view.top} == {"i0", "i1", "i2", "i3"}
        for alone in (UpsertItem("more"), Recommend("ann", candidates=["other"]), Feedback("lost", 1, user="bob", item="new")):
            with pytest.raises(DiskFull):
                engine.ask(alone)
            assert engine.ask(AskVersion()) == before
        switch.error = None
        accepted = engine.ask(Feedback("lost", 1, user="bob", item="new"))
        assert (accepted.duplicate, accepted.seq) == (False, before.seq + 2)  # the item, and the rating
        expected = engine.ask(AskVersion()).state_id
    with Engine(place / "shop") as engine:
        engine.wait_ready()
        assert engine.ask(AskVersion()).state_id == expected
        assert engine.ask(AskVersion()).items == 5


def test_a_real_limit_on_the_size_of_files(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", FILLING, str(tmp_path / "shop")], capture_output=True, text=True, check=False)
    kept, refused, ratings, readable = map(int, run.stdout.split())
    assert run.returncode == -9, run.stderr
    assert 0 < kept < 5000
    assert refused == 10
    assert (ratings, readable) == (kept, 1)
    with Engine(tmp_path / "shop") as engine:
        engine.wait_ready()
        assert engine.ask(AskVersion()).ratings == kept
        again = engine.ask(Feedback("event0", 3, user="user0", item="item0"))
        assert again.duplicate
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_after_a_failed_synchronisation_nothing_is_accepted(place: Place) -> None:
    switch = Switch()
    failures: list[BaseException] = []
    engine = Engine(place / "shop", OPTIONS, on_failure=failures.append, open_store=switch.store())
    engine.wait_ready()
    engine.ask(Feedback("kept", 4, user="ann", item="tea"))
    switch.error = StorageFailed("the disk did not synchronise")
    with pytest.raises(StorageFailed):
        engine.ask(Feedback("lost", 4, user="ann", item="tea"))
    switch.error = None
    engine.close()
    with pytest.raises(StorageFailed):
        engine.ask(Feedback("later", 4, user="ann", item="tea"))
    with pytest.raises(StorageFailed):
        engine.ask(AskVersion())
    assert [str(failure) for failure in failures] == ["the disk did not synchronise"]
    assert engine.readiness.phase == "failed"
    with Engine(place / "shop") as engine:  # the folder is free again, and holds what was acknowledged
        engine.wait_ready()
        assert engine.ask(AskVersion()).ratings == 1
        assert not engine.ask(Feedback("lost", 4, user="ann", item="tea")).duplicate


def test_sqlite_errors_are_told_apart(tmp_path: Path) -> None:
    """A database that may not grow is full; one that is read-only has failed."""
    with Engine(tmp_path / "full", OPTIONS) as engine:
        engine.wait_ready()
        store = engine._store
        assert isinstance(store, SQLiteLog)
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        errors = [engine.submit(Feedback(f"e{number}", 3, user="u" * 200, item="i" * 200)).exception() for number in range(40)]
        assert {type(error) for error in errors} <= {type(None), DiskFull}
        assert 0 < errors.count(None) < 40
        assert engine.ask(AskVersion()).ratings == errors.count(None)
    engine = Engine(tmp_path / "failed", OPTIONS)
    engine.wait_ready()
    engine._store._connection.execute("PRAGMA query_only = ON")  # type: ignore[attr-defined]
    with pytest.raises(StorageFailed):
        engine.ask(Feedback("e", 3, user="ann", item="tea"))
    engine.close()
