"""Copies of a folder that is being served: a backup, a restored folder, and commands that only read."""

import json
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.service.api.errors import NotReady, UnknownDecision
from albatross.service.http.access.keys import Keys
from albatross.service.storage.folder import LOG
from albatross.service.storage.sqlite.backup import KEEP
from albatross.service.storage.store import DamagedLog

ROUNDS = 6


class Busy:
    """A recommender that gets ratings all the time, until told to end."""

    def __init__(self, folder: Path) -> None:
        self.shop = Recommender(folder, scale=(1, 5), policy=ALB(rank=2))
        self.acknowledged = 0
        self._ending = threading.Event()
        self._enough = threading.Condition()
        self._writers = [threading.Thread(target=self._write, args=(writer,)) for writer in range(4)]
        for thread in self._writers:
            thread.start()

    def _write(self, writer: int) -> None:
        number = 0
        while not self._ending.is_set():
            number += 1
            if number % 5 == 0:
                self.shop.recommend(f"u{number % 9}", request_id=f"r{writer}-{number}")
            else:
                self.shop.rate_item(f"u{number % 9}", f"i{number % 13}", 1 + number % 5, event_id=f"e{writer}-{number}")
                with self._enough:
                    self.acknowledged += 1
                    self._enough.notify_all()

    def wait_for(self, more: int) -> int:
        """Wait until so many more were acknowledged; returns how many are now."""
        with self._enough:
            wanted = self.acknowledged + more
            self._enough.wait_for(lambda: self.acknowledged >= wanted)
            return self.acknowledged

    def close(self) -> None:
        self._ending.set()
        for thread in self._writers:
            thread.join()
        self.shop.close()


def test_backups_of_a_busy_folder_are_sound_and_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busy = Busy(tmp_path / "shop")
    try:
        for number in range(ROUNDS):
            before = busy.wait_for(50)
            target = tmp_path / f"backup-{number}"
            assert main(["backup", str(tmp_path / "shop"), str(target)]) == 0, capsys.readouterr().err
            assert "every row, id and link is sound" in capsys.readouterr().out
            with Recommender(target) as copy:
                assert copy.version().ratings >= before  # everything acknowledged before is in it
    finally:
        busy.close()
    assert main(["backup", str(tmp_path / "shop"), str(tmp_path / "backup-0")]) == 2
    assert "exists already" in capsys.readouterr().err
    assert not list(tmp_path.glob(".*"))


def test_a_service_backs_itself_up_and_keeps_the_newest(tmp_path: Path) -> None:
    busy = Busy(tmp_path / "shop")
    try:
        taken = []
        for _ in range(KEEP + 2):
            busy.wait_for(10)
            taken.append(busy.shop.backup())
    finally:
        busy.close()
    assert [one.seq for one in taken] == sorted({one.seq for one in taken})
    kept = sorted((tmp_path / "shop" / "backups").iterdir())
    assert [str(path) for path in kept] == [one.path for one in taken[-KEEP:]]
    for path in kept:
        assert main(["verify", str(path)]) == 0


def test_commands_that_read_do_so_while_it_serves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busy = Busy(tmp_path / "shop")
    try:
        for number in range(ROUNDS):
            before = busy.wait_for(30)
            if number == 2:
                busy.shop.snapshot()
            for command in (["verify", str(tmp_path / "shop"), "--decisions"], ["doctor", str(tmp_path / "shop")]):
                assert main(command) == 0, capsys.readouterr().err
            assert main(["export", str(tmp_path / "shop"), str(tmp_path / "events.jsonl")]) == 0
            events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
            assert sum(event["kind"] == "feedback" for event in events) >= before
        assert main(["replay", str(tmp_path / "shop"), str(tmp_path / "other"), "--policy", "item-mean"]) == 0
        assert main(["forget", str(tmp_path / "shop"), "u1"]) == 2  # that would write
        assert "is in use" in capsys.readouterr().err
    finally:
        busy.close()
    assert main(["verify", str(tmp_path / "shop")]) == 0


def test_a_restored_folder_goes_on_from_the_backup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ALB(rank=2), items=["tea", "mate"]) as shop:
        shop.rate_item("ann", "tea", 4, event_id="first")
        outstanding = shop.recommend("ann")
        (tmp_path / "shop" / "albatross.toml").write_text("floor = 0.05\n")
        assert main(["backup", str(tmp_path / "shop"), str(tmp_path / "backup")]) == 0
        expected = shop.version()
        lost = shop.recommend("eve")
    settings = (tmp_path / "shop" / "albatross.toml").read_bytes()
    shutil.rmtree(tmp_path / "shop")
    capsys.readouterr()
    assert main(["restore", str(tmp_path / "backup"), str(tmp_path / "shop")]) == 0
    assert str(expected.state_id) in capsys.readouterr().out
    assert (tmp_path / "shop" / "albatross.toml").read_bytes() == settings
    with Recommender(tmp_path / "shop") as shop:
        assert shop.version() == expected
        instead = shop.recommend("bob")  # the same number as the lost decision of eve
        assert instead.decision_id.partition("-")[0] == lost.decision_id.partition("-")[0]
        with pytest.raises(UnknownDecision):
            shop.rate(lost, 5)
        assert shop.rate(outstanding, 5).applied
        assert shop.rate_item("ann", "tea", 4, event_id="first").duplicate
    assert main(["restore", str(tmp_path / "backup"), str(tmp_path / "shop")]) == 2
    (tmp_path / "backup" / LOG).write_bytes((tmp_path / "backup" / LOG).read_bytes().replace(b'"first"', b'"fjrst"'))
    assert main(["restore", str(tmp_path / "backup"), str(tmp_path / "third")]) == 2
    assert not (tmp_path / "third").exists()


@pytest.mark.parametrize("lost", [False, True], ids=["kept", "lost"])
def test_where_a_key_was_needed_one_is_needed_in_every_copy(tmp_path: Path, lost: bool) -> None:
    shop, backup = tmp_path / "shop", tmp_path / "backup"
    with Recommender(shop, scale=(1, 5), policy=ItemMean()) as opened:
        opened.rate_item("ann", "tea", 4)
    key = Keys(shop).create(["read"])
    if lost:
        (shop / "keys.json").unlink()
    assert main(["backup", str(shop), str(backup)]) == 0
    assert main(["restore", str(backup), str(tmp_path / "restored")]) == 0
    assert main(["replay", str(shop), str(tmp_path / "replayed"), "--policy", "popularity-memory"]) == 0
    for folder in (backup, tmp_path / "restored", tmp_path / "replayed"):
        assert not [path for path in folder.iterdir() if path.stat().st_mode & 0o077 and path.is_file()]
        if not lost:
            keys = Keys(folder)
            assert keys.needed
            assert keys.find(key) is not None
            (folder / "keys.json").unlink()
        with pytest.raises(NotReady):
            _ = Keys(folder).needed


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM handles WHERE seq = 9",
        "UPDATE handles SET handle = x'00112233445566778899aabbccddeeff' WHERE seq = 9",
        "UPDATE handles SET seq = 8 WHERE seq = 9",
        "INSERT INTO handles VALUES (x'00112233445566778899aabbccddeeff', 9, x'01')",
        "UPDATE handles SET handle = x'00' WHERE seq = 9",
    ],
)
@pytest.mark.parametrize("with_snapshot", [True, False], ids=["with a snapshot", "from the log alone"])
def test_a_start_checks_the_table_of_handles(change: str, with_snapshot: bool, tmp_path: Path) -> None:
    """Without it, events would count twice, or new ones not at all."""
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ALB(rank=2)) as shop:
        for number in range(20):
            shop.rate_item(f"u{number}", "tea", 3, event_id=f"e{number}")
        shop.rate(shop.recommend("ann", request_id="r"), 4)
    if not with_snapshot:
        shutil.rmtree(tmp_path / "shop" / "snapshots")
    connection = sqlite3.connect(tmp_path / "shop" / LOG)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(DamagedLog):
        Recommender(tmp_path / "shop")


def test_a_loss_can_be_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "shop"
    with Recommender(folder, scale=(1, 5), policy=ALB(rank=2)) as shop:
        for number in range(20):
            shop.rate_item(f"u{number}", "tea", 3, event_id=f"e{number}")
    connection = sqlite3.connect(folder / LOG)
    connection.execute("DELETE FROM log WHERE seq > 15")
    connection.execute("DELETE FROM handles WHERE seq > 15")
    connection.commit()
    connection.close()
    for refused in (["verify", str(folder)], ["backup", str(folder), str(tmp_path / "backup")], ["doctor", str(folder)]):
        assert main(refused) == 2
        told = capsys.readouterr()
        assert "events up to 22 were acknowledged" in told.out + told.err
    with pytest.raises(InvalidInput, match="--accept-loss"):
        Recommender(folder)
    shutil.rmtree(folder / "snapshots")
    assert main(["doctor", str(folder), "--accept-loss"]) == 0
    with Recommender(folder) as shop:
        assert shop.version().ratings == 13
        assert not shop.rate_item("u19", "tea", 3, event_id="e19").duplicate
    assert main(["verify", str(folder)]) == 0


@pytest.mark.parametrize("damage", ["missing", "empty", "zeroed", "flipped", "one slot"])
def test_the_mark_itself_may_be_damaged(damage: str, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    with Recommender(folder, scale=(1, 5), policy=ALB(rank=2)) as shop:
        for number in range(5):
            shop.rate_item("ann", "tea", 3, event_id=f"e{number}")
    mark = folder / "mark"
    content = mark.read_bytes()
    newer = max((0, 512), key=lambda start: int.from_bytes(content[start : start + 8], "little"))
    if damage == "missing":
        mark.unlink()
    else:
        one_slot = content[:newer] + bytes(512) + content[newer + 512 :]
        flipped = bytes(byte ^ 1 for byte in content)
        mark.write_bytes({"empty": b"", "zeroed": bytes(1024), "flipped": flipped, "one slot": one_slot}[damage])
    if damage == "one slot":  # the other was written a commit before: less is known, and nothing is wrong
        with Recommender(folder) as shop:
            assert shop.version().ratings == 5
    else:
        with pytest.raises(DamagedLog, match="mark of the log's head"):
            Recommender(folder)
