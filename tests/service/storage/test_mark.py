"""The mark: what the journal loses, it restores; what it cannot restore, it reports."""

import shutil
from pathlib import Path

import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.policies.item_mean import ItemMean
from albatross.service.api.requests import Feedback, FeedbackBatch
from albatross.service.storage import mark as mark_module
from albatross.service.storage.folder import LOG
from albatross.service.storage.mark import DIGEST, ENTRY, KEY, MARK, PAGE, PROOF, SIGN, SLOT, Head, Mark, read_mark, read_marked, write_mark
from albatross.service.storage.store import DamagedLog

JOURNAL = f"{LOG}-wal"


def rate(shop: Recommender, numbers: range) -> None:
    for number in numbers:
        shop.rate_item(f"user{number % 7}", f"item{number % 5}", 1 + number % 5, event_id=f"event{number}")


def copy(folder: Path, target: Path, *names: str) -> None:
    target.mkdir(exist_ok=True)
    for name in names:
        (target / name).unlink(missing_ok=True)
        if (folder / name).exists():
            shutil.copy2(folder / name, target / name)


def begin(folder: Path) -> Recommender:
    return Recommender(folder, scale=(1, 5), policy=ItemMean())


def test_a_power_failure_that_takes_the_journal_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without power, what no synchronisation has reached is gone: here the log and its journal are as they were thirty commits before."""
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    with begin(folder) as shop:
        rate(shop, range(20))
        copy(folder, failed, LOG, JOURNAL)
        rate(shop, range(20, 50))
        copy(folder, failed, MARK)
        expected = shop.version()
    assert main(["verify", str(failed)]) == 0  # who only reads it takes the rows from the mark
    assert str(expected.state_id) in capsys.readouterr().out
    with Recommender(failed) as shop:
        assert (shop.version().seq, shop.version().state_id) == (expected.seq, expected.state_id)
        assert shop.rate_item("user0", "item4", 5, event_id="event49").duplicate
        rate(shop, range(50, 60))
        assert shop.version().ratings == 60


def test_no_loss_is_accepted_that_can_be_mended(tmp_path: Path) -> None:
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    with begin(folder) as shop:
        rate(shop, range(3))
        copy(folder, failed, LOG, JOURNAL)
        rate(shop, range(3, 9))
        copy(folder, failed, MARK)
    assert main(["doctor", str(failed), "--accept-loss"]) == 0
    with Recommender(failed) as shop:
        assert shop.version().ratings == 9


def test_what_was_restored_is_reported(tmp_path: Path) -> None:
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    with begin(folder) as shop:
        rate(shop, range(3))
        copy(folder, failed, LOG, JOURNAL)
        rate(shop, range(3, 5))
        copy(folder, failed, MARK)
    with Recommender(failed) as shop:
        assert shop.version().ratings == 5
        assert any("4 events" in complaint and "restored" in complaint for complaint in shop.engine.complaints)


def test_wherever_the_journal_is_cut_nothing_is_lost(tmp_path: Path) -> None:
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    with begin(folder) as shop:
        rate(shop, range(12))
        copy(folder, failed, LOG, JOURNAL, MARK)
        expected = shop.version()
    journal, mark, log = ((failed / name).read_bytes() for name in (JOURNAL, MARK, LOG))
    for left in range(0, len(journal), len(journal) // 25):
        (failed / JOURNAL).write_bytes(journal[:left])
        (failed / MARK).write_bytes(mark)
        (failed / LOG).write_bytes(log)
        with Recommender(failed) as shop:
            assert (shop.version().seq, shop.version().state_id) == (expected.seq, expected.state_id)
        shutil.rmtree(failed / "snapshots")


def test_when_the_mark_is_full_the_journal_is_synchronised_and_it_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark_module, "ROOM", 8 * PAGE)
    folder, failed, long_ago = tmp_path / "shop", tmp_path / "failed", tmp_path / "long_ago"
    with begin(folder) as shop:
        rate(shop, range(3))
        copy(folder, long_ago, LOG, JOURNAL)
        rate(shop, range(3, 30))
        assert shop.engine._store._flushed > 7  # type: ignore[attr-defined]
        copy(folder, failed, LOG, JOURNAL)
        rate(shop, range(30, 33))
        copy(folder, failed, MARK)
        copy(folder, long_ago, MARK)
    with Recommender(failed) as shop:
        assert shop.version().ratings == 33
    with pytest.raises(DamagedLog, match="events up to 39 were acknowledged"):  # a genesis, five items, 33 ratings
        Recommender(long_ago)


def test_a_group_that_has_no_room_in_the_mark_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark_module, "ROOM", PAGE)
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    with begin(folder) as shop:
        rate(shop, range(2))
        shop.ask(FeedbackBatch([Feedback(f"large{number}", 3, user="ann", item=f"item{number}") for number in range(50)]))
        copy(folder, failed, LOG, JOURNAL, MARK)
    head, entries = read_marked(failed)
    assert head is not None
    assert not entries or entries[-1].head.seq < head.seq
    with Recommender(failed) as shop:
        assert shop.version().ratings == 52


def test_damage_in_the_mark_is_noticed_where_the_log_needs_it(tmp_path: Path) -> None:
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    with begin(folder) as shop:
        rate(shop, range(5))
        copy(folder, failed, LOG, JOURNAL)
        rate(shop, range(5, 10))
        copy(folder, failed, MARK)
        copy(folder, tmp_path / "whole", LOG, JOURNAL, MARK)
    for place in (failed, tmp_path / "whole"):
        content = bytearray((place / MARK).read_bytes())
        content[9 * PAGE + ENTRY.size + DIGEST + 20] ^= 1  # in the middle: later entries prove that this one was acknowledged
        (place / MARK).write_bytes(content)
    with pytest.raises(DamagedLog, match="were acknowledged"):
        Recommender(failed)
    with Recommender(tmp_path / "whole") as shop:
        assert shop.version().ratings == 10


def test_a_torn_entry_was_never_acknowledged(tmp_path: Path) -> None:
    write_mark(tmp_path, Head(1, bytes(16)))
    mark = Mark(tmp_path)
    mark.set(Head(1, bytes(16)), wipe=True)
    assert mark.add(Head(2, b"2" * 16), b"first")
    assert mark.add(Head(3, b"3" * 16), b"s" * 3 * PAGE)
    mark.close()
    content = (tmp_path / MARK).read_bytes()
    for written in (2 * PAGE, 2 * PAGE + ENTRY.size, 2 * PAGE + 100, 4 * PAGE, 5 * PAGE):
        (tmp_path / MARK).write_bytes(content[:written].ljust(len(content), b"\0"))
        assert read_mark(tmp_path) == Head(2, b"2" * 16)
        assert [entry.content for entry in read_marked(tmp_path).entries] == [b"first"]


@pytest.mark.parametrize("place", [KEY.start, PROOF.start])
def test_a_damaged_key_hides_nothing(place: int, tmp_path: Path) -> None:
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    with begin(folder) as shop:
        rate(shop, range(3))
        copy(folder, failed, LOG, JOURNAL)
        rate(shop, range(3, 9))
        copy(folder, failed, MARK)
    content = bytearray((failed / MARK).read_bytes())
    content[place] ^= 1
    (failed / MARK).write_bytes(content)
    if place == KEY.start:
        with pytest.raises(DamagedLog, match="mark of the log's head is missing or damaged"):
            Recommender(failed)
    else:  # the entries themselves prove the key
        with Recommender(failed) as shop:
            assert shop.version().ratings == 9


def test_a_mark_without_the_digest_of_its_key_or_without_entries_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    with begin(folder) as shop:
        rate(shop, range(3))
        copy(folder, tmp_path / "killed", LOG, JOURNAL, MARK)
    copy(folder, tmp_path / "closed", LOG, MARK)
    copy(folder, tmp_path / "released", LOG, MARK)
    for name in ("killed", "closed"):
        content = bytearray((tmp_path / name / MARK).read_bytes())
        content[PROOF] = bytes(DIGEST)
        (tmp_path / name / MARK).write_bytes(content)
    (tmp_path / "released" / MARK).write_bytes((folder / MARK).read_bytes()[: 2 * SLOT])
    for name in ("killed", "closed", "released"):
        with Recommender(tmp_path / name) as shop:
            assert shop.version().ratings == 3
        found = (tmp_path / name / MARK).read_bytes()
        assert found[PROOF] == mark_module._digest(found[KEY])


def test_a_first_entry_that_is_torn_is_not_taken_for_a_damaged_key(tmp_path: Path) -> None:
    write_mark(tmp_path, Head(1, bytes(16)))
    mark = Mark(tmp_path)
    mark.set(Head(1, bytes(16)), wipe=True)
    assert mark.add(Head(2, b"2" * 16), b"x" * 3 * PAGE)
    mark.close()
    content = (tmp_path / MARK).read_bytes()
    (tmp_path / MARK).write_bytes(content[: 2 * PAGE].ljust(len(content), b"\0"))
    assert read_marked(tmp_path) == (Head(1, bytes(16)), [])


def test_content_is_not_taken_for_an_entry(tmp_path: Path) -> None:
    """A client who knows the form of entries, but not the key, sends one."""
    start = ENTRY.pack(SIGN, 1_000_000, bytes(16), 0, 0)
    forged = start + mark_module._digest(start)
    write_mark(tmp_path, Head(1, bytes(16)))
    mark = Mark(tmp_path)
    mark.set(Head(1, bytes(16)), wipe=True)
    assert mark.add(Head(2, b"2" * 16), bytes(PAGE - ENTRY.size - DIGEST) + forged)
    mark.close()
    assert (tmp_path / MARK).read_bytes()[2 * PAGE :].startswith(forged)
    assert read_mark(tmp_path) == Head(2, b"2" * 16)


def test_a_closed_folder_keeps_no_second_copy_of_its_rows(tmp_path: Path) -> None:
    with begin(tmp_path / "shop") as shop:
        shop.rate_item("somebody", "tea", 3)
        assert b"somebody" in (tmp_path / "shop" / MARK).read_bytes()
    assert b"somebody" not in (tmp_path / "shop" / MARK).read_bytes()


def test_what_is_forgotten_leaves_the_mark_before_that_is_told(tmp_path: Path) -> None:
    with begin(tmp_path / "shop") as shop:
        shop.rate_item("somebody", "tea", 3)
        shop.forget_user("somebody")
        assert b"somebody" not in (tmp_path / "shop" / MARK).read_bytes()
