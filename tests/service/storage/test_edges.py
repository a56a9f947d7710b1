"""What happens at the edges of a folder's life: two who begin it at once, readers who stay, copies that fail, files that are gone."""

import os
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.service.api.answers import Accepted, Refusal
from albatross.service.api.errors import BadValue, NotWritten
from albatross.service.api.requests import AskVersion, Feedback, FeedbackBatch, Recommend
from albatross.service.engine.deciding import choosing as deciding
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.queue import Queue
from albatross.service.engine.tickets import Ticket
from albatross.service.http.access.keys import Keys
from albatross.service.storage import home as home_module
from albatross.service.storage.folder import LOG, FolderLock
from albatross.service.storage.handles import answer_handle
from albatross.service.storage.mark import read_mark
from albatross.service.storage.migration import reading_log
from albatross.service.storage.sqlite import log as log_module
from albatross.service.storage.sqlite.log import SQLiteLog

OPTIONS = Options(scale=(1, 5), policy=ItemMean(), snapshot_every=0)


def rate(shop: Recommender, number: int, user: str = "ann") -> Any:
    return shop.rate_item(user, f"i{number % 5}", 1 + number % 5, event_id=f"e{number}")


def test_who_comes_second_does_not_remove_the_folder_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find no folder; one of them gets the lock and serves."""
    first: list[Engine] = []

    class Late(FolderLock):
        def __init__(self, folder: Path) -> None:
            if not first:
                monkeypatch.setattr(home_module, "FolderLock", FolderLock)
                first.append(Engine(folder, OPTIONS))
                first[0].wait_ready()
                first[0].ask(Feedback("kept", 3, user="ann", item="tea"))
            super().__init__(folder)

    monkeypatch.setattr(home_module, "FolderLock", Late)
    with pytest.raises(InvalidInput, match="is in use"):
        Engine(tmp_path / "shop", OPTIONS)
    assert first[0].ask(AskVersion()).ratings == 1
    first[0].close()
    with Recommender(tmp_path / "shop") as shop:
        assert shop.version().ratings == 1


def test_what_is_forgotten_leaves_the_journal_when_readers_have(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        for number in range(50):
            rate(shop, number, "somebody-to-forget")
        with reading_log(tmp_path / "shop"):
            shop.forget_user("somebody-to-forget")
        rate(shop, 100)  # the first commit after the reader has gone
        for path in (tmp_path / "shop").iterdir():
            assert not path.is_file() or b"somebody-to-forget" not in path.read_bytes(), path


def test_the_journal_is_settled_from_time_to_time_and_not_with_each_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "JOURNAL_BYTES", 100_000)
    settled: list[int] = []
    checkpoint = SQLiteLog._checkpoint

    def counted(self: SQLiteLog) -> None:
        settled.append(self.head.seq)
        checkpoint(self)

    monkeypatch.setattr(SQLiteLog, "_checkpoint", counted)
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        for number in range(200):
            rate(shop, number)
    assert 3 <= len(settled) <= 20


def test_a_backup_that_fails_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        rate(shop, 1)

        def fail(*arguments: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as patch:
            patch.setattr("albatross.service.storage.home.keep_backup", fail)
            with pytest.raises(NotWritten, match="full"):
                shop.backup()
        assert shop.backup().seq == 3


def test_backups_of_the_owner_are_left_alone(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        for name in ("2024-12-24-before-christmas", "9lives", "000007-mine"):
            (tmp_path / "shop" / "backups" / name).mkdir(parents=True)
        paths = [Path(shop.backup().path).name for _ in range(5)]
    assert [name.partition("-")[0] for name in paths] == [f"{number:06d}" for number in range(1, 6)]
    assert len(list((tmp_path / "shop" / "backups").iterdir())) == 3 + 3


@pytest.mark.parametrize("lost", ["log", "log and mark", "log and mark, journal left", "emptied"])
def test_a_lost_log_is_not_taken_for_a_new_folder(lost: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "shop"
    with Recommender(folder, scale=(1, 5), policy=ItemMean()) as shop:
        for number in range(5):
            rate(shop, number)
    if lost == "emptied":
        (folder / LOG).write_bytes(b"")
    else:
        (folder / LOG).unlink()
    if "mark" in lost:
        (folder / "mark").unlink()
    if "journal" in lost:
        shutil.rmtree(folder / "snapshots")
        (folder / f"{LOG}-wal").write_bytes(b"journal")
    with pytest.raises(InvalidInput, match="damaged"):
        Engine(folder, OPTIONS)
    assert main(["doctor", str(folder)]) == 2
    assert "damaged" in capsys.readouterr().out


def test_snapshots_are_kept_after_a_loss_was_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    with Recommender(folder, scale=(1, 5), policy=ItemMean()) as shop:
        for number in range(20):
            rate(shop, number)
            if number % 5 == 0:
                shop.snapshot()
    with sqlite3.connect(folder / LOG) as connection:
        connection.execute("DELETE FROM log WHERE seq > 8")
        connection.execute("DELETE FROM handles WHERE seq > 8")
    connection.close()
    assert main(["doctor", str(folder), "--accept-loss"]) == 0
    with Recommender(folder) as shop:
        rate(shop, 100)
        assert Path(shop.snapshot().path).exists()


def test_what_a_forgotten_user_answered_is_not_kept(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        decision = shop.recommend("ann", candidates=["tea"])
        shop.rate(decision, 4, event_id="answer")
        seq = int(decision.decision_id.partition("-")[0])
        shop.forget_user("ann")
        again = shop.rate(decision, 4, event_id="answer")
        assert (again.duplicate, again.applied) == (True, False)
    connection = sqlite3.connect(tmp_path / "shop" / LOG)
    kept = {handle for (handle,) in connection.execute("SELECT handle FROM handles")}
    connection.close()
    assert len(kept) == 1
    assert answer_handle(seq, "tea") not in kept
    assert main(["verify", str(tmp_path / "shop")]) == 0


def test_a_policy_that_cannot_hold_the_log_makes_no_folder(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.random.default_rng(0).normal(size=(100, 3)))
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        for number in range(150):
            shop.rate_item("ann", f"i{number}", 3)
    command = [
        "replay",
        str(tmp_path / "shop"),
        str(tmp_path / "other"),
        "--policy",
        "oful",
        "--set",
        f"features={tmp_path / 'features.npy'}",
    ]
    assert main(command) == 2
    assert not (tmp_path / "other").exists()


def test_marks_alternate_over_restarts(tmp_path: Path) -> None:
    """So that of two slots, the older is one commit old, not a life."""
    for number in range(4):
        with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
            rate(shop, number)
        content = (tmp_path / "shop" / "mark").read_bytes()
        numbers = sorted(int.from_bytes(content[start : start + 8], "little") for start in (0, 512))
        head = read_mark(tmp_path / "shop")
        assert head is not None
        assert numbers[1] == head.seq
        assert number == 0 or numbers[1] - numbers[0] <= 2  # an item and a rating


def test_a_decision_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        before = engine.ask(AskVersion())

        def fail(*arguments: object, **named: object) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(deciding, "choose_counting", fail)
            with pytest.raises(ZeroDivisionError):
                engine.ask(Recommend("ann", candidates=["tea", "mate"]))
        assert engine.ask(AskVersion()) == before


def test_one_impossible_line_does_not_take_the_batch_with_it(tmp_path: Path) -> None:
    odd: Any = [10**400, "4", None]
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        events = [Feedback(f"e{number}", rating, user="ann", item="tea") for number, rating in enumerate([3, *odd, 4])]
        events.append(Feedback(5, 3, user="ann", item="tea"))  # type: ignore[arg-type]
        answers = engine.ask(FeedbackBatch(events)).answers
        assert [type(answer) for answer in answers] == [Accepted, Refusal, Refusal, Refusal, Accepted, Refusal]
        assert engine.ask(AskVersion()).ratings == 2
        for wrong in ("", "\ud800"):
            with pytest.raises(BadValue):
                engine.ask(Feedback("x", 3, wrong))


def test_explanations_at_any_scale(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", scale=(-1e9, 1e9), policy=ALB()) as shop:
        for number in range(40):
            shop.rate_item(f"u{number % 3}", f"i{number % 7}", (-1) ** number * 1e9)
        for number in range(3):
            explanation = shop.recommend(f"u{number}", explain=True).explanation
            assert explanation is not None
            assert explanation.items[0].width is not None


def test_a_request_weighs_what_it_costs() -> None:
    def weight(request: Any) -> int:
        return Ticket(request, list.clear).weight  # type: ignore[arg-type]

    assert weight(AskVersion()) == weight(Recommend("ann")) == 1
    assert weight(Recommend("ann", n=100)) == 100
    assert weight(FeedbackBatch([Feedback("e", 3)] * 500)) == 500


def test_batches_do_not_make_single_requests_seem_slow() -> None:
    """What a batch takes is shared by its ratings; what happens once, such as compiling, does not close the door for long."""
    queue = Queue(threading.Condition(), most=4096)
    batch = Ticket(FeedbackBatch([Feedback("e", 3)] * 500), list.clear)  # type: ignore[arg-type]
    for _ in range(200):
        queue.observe([batch], seconds=0.05)
    assert queue.capacity == pytest.approx(500, abs=1)  # of 100 µs each, in 50 ms
    queue.observe([Ticket(AskVersion(), list.clear)], seconds=7.0)  # type: ignore[arg-type]
    assert queue.capacity > 50


def test_a_full_group_does_not_wait_for_further_requests() -> None:
    waits = 0

    class Counted(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal waits
            waits += 1
            return True

    changed = Counted()
    queue = Queue(changed, most=4096)

    def gathered(answered: list[Ticket], *requests: Any) -> int:
        """How many are in the next group after so many were answered, with how many waits."""
        nonlocal waits
        waits = 0
        queue.observe(answered, seconds=0.001)
        for request in requests:
            queue.add(Ticket(request, list.clear), now=0.0)  # type: ignore[arg-type]
        with changed:
            queue.gather(lambda: False, None)
        return len(queue.take())

    two = [Ticket(AskVersion(), list.clear)] * 2  # type: ignore[arg-type]
    batch = FeedbackBatch([Feedback("e", 3)] * 500)
    assert (gathered(two, AskVersion()), waits) == (1, 1)
    assert (gathered(two, batch), waits) == (1, 0)
    assert (gathered(two, AskVersion(), AskVersion()), waits) == (2, 0)
    assert (gathered(two, AskVersion()), waits) == (1, 1)  # what was taken weighs nothing any more


def test_a_folder_that_could_not_be_made_leaves_none_of_those_it_is_in(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="oracle"):
        Recommender(tmp_path / "shops" / "south" / "tea", scale=(1, 5), policy="oracle")
    assert not list(tmp_path.iterdir())
    (tmp_path / "shops").mkdir()
    with pytest.raises(InvalidInput, match="oracle"):
        Recommender(tmp_path / "shops" / "south" / "tea", scale=(1, 5), policy="oracle")
    assert not list((tmp_path / "shops").iterdir())


def test_what_killed_processes_left_is_tidied_away(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    with Recommender(folder, scale=(1, 5), policy=ItemMean()) as shop:
        rate(shop, 1)
        kept = Path(shop.snapshot().path)
        shop.backup()
    writing = folder / ".keys.json.0123.partial"  # perhaps by a command that makes a key just now
    writing.write_bytes(b"half")
    snapshots = folder / "snapshots"
    litter = [folder / ".mark.0123.partial", snapshots / ".000000000000098.npz.0123.partial", snapshots / "000000000000099.npz"]
    for path in litter:
        path.write_bytes(b"half")
    (folder / "backups" / ".000002-event-3.17.unfinished").mkdir()
    (folder / "snapshots" / "lost+found").mkdir()
    with Recommender(folder) as shop:
        assert not any(path.exists() for path in litter)
        assert writing.exists()
        Keys(folder).create(["read"])
        assert not writing.exists()
        assert not (folder / "backups" / ".000002-event-3.17.unfinished").exists()
        assert kept.exists()
        shop.forget_user("ann")


def test_relaxed_commits_are_synchronised_also_while_somebody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark must never say more than is on disk: the journal itself is synchronised before it."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("there is no /proc to see which file is synchronised")
    synced: list[str] = []
    fsync = os.fsync

    def noted(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").readlink().name)
        fsync(file)

    monkeypatch.setattr("os.fsync", noted)
    monkeypatch.setattr("os.fdatasync", noted, raising=False)
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean(), durability="relaxed") as shop:
        rate(shop, 0)
        with reading_log(tmp_path / "shop"):
            rate(shop, 1)
            synced.clear()
            shop.snapshot()  # which flushes first
            assert f"{LOG}-wal" in synced
            head = read_mark(tmp_path / "shop")
            assert head is not None
            assert head.seq == shop.version().seq
