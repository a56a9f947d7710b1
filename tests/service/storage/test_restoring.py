"""Readers and starts after a power failure: whoever comes first, and with whatever disk, nothing that the mark has is lost."""

import errno
import hashlib
import os
import resource
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from power import Disk, content_of, make, record, shim

from albatross import Recommender
from albatross.cli import main
from albatross.core import files
from albatross.policies.item_mean import ItemMean
from albatross.service.api.errors import DiskFull, StorageFailed
from albatross.service.storage import mark as mark_module
from albatross.service.storage import migration
from albatross.service.storage.folder import LOG, FolderLock
from albatross.service.storage.home import FolderHome
from albatross.service.storage.mark import MARK, PAGE, read_mark
from albatross.service.storage.migration import reading_log
from albatross.service.storage.sqlite.log import SQLiteLog, create_log
from albatross.service.storage.sqlite.tail import missing_rows
from albatross.service.storage.store import DamagedLog, Row

JOURNAL = f"{LOG}-wal"
STARTER = """
import os, sys
from pathlib import Path
from albatross.service.storage.sqlite.log import SQLiteLog
SQLiteLog(Path(sys.argv[1]))
os._exit(0)
"""


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """A folder whose log has lost six ratings that its mark has."""
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    with Recommender(folder, scale=(1, 5), policy=ItemMean()) as shop:
        rate(shop, range(3))
        copy(folder, failed, LOG, JOURNAL)
        rate(shop, range(3, 9))
        copy(folder, failed, MARK)
    return failed


def rate(shop: Recommender, numbers: range) -> None:
    for number in numbers:
        shop.rate_item(f"user{number % 7}", f"item{number % 5}", 1 + number % 5, event_id=f"event{number}")


def copy(folder: Path, target: Path, *names: str) -> None:
    target.mkdir(exist_ok=True)
    for name in names:
        shutil.copy2(folder / name, target / name)


def seen(folder: Path, target: Path) -> dict[str, bytes]:
    """The files of a folder. Another process reads them: if this one closed a file, it would lose SQLite's locks on it."""
    subprocess.run(["cp", "-r", str(folder), str(target)], check=True)
    return content_of(target)


def ratings(folder: Path) -> int:
    with Recommender(folder) as shop:
        return shop.version().ratings


class Shortage:
    """No file can be opened: an application holds all descriptors."""

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, self.before[1]))

    def __exit__(self, *error: object) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, self.before)


class Growth:
    """No file can grow beyond a limit."""

    def __init__(self, limit: int) -> None:
        self.limit, self.before = limit, resource.getrlimit(resource.RLIMIT_FSIZE)

    def __enter__(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.before[1]))

    def __exit__(self, *error: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)


def test_who_reads_a_folder_leaves_it_as_it_is(failed: Path, tmp_path: Path) -> None:
    before = {name: hashlib.sha256((failed / name).read_bytes()).digest() for name in (LOG, JOURNAL, MARK)}
    lock = FolderLock(failed)  # a service is about to open it
    try:
        assert main(["verify", str(failed)]) == 0
        assert main(["export", str(failed), str(tmp_path / "events.jsonl")]) == 0
        assert main(["backup", str(failed), str(tmp_path / "backup")]) == 0
        assert main(["doctor", str(failed)]) == 0
    finally:
        lock.release()
    assert "event8" in (tmp_path / "events.jsonl").read_text()
    assert {name: hashlib.sha256((failed / name).read_bytes()).digest() for name in (LOG, JOURNAL, MARK)} == before
    assert ratings(failed) == ratings(tmp_path / "backup") == 9


def test_a_closed_folder_is_read_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "shop"
    with Recommender(folder, scale=(1, 5), policy=ItemMean()) as shop:
        rate(shop, range(9))
    (folder / f"{LOG}-shm").mkdir()  # as on a disk that is read-only, SQLite cannot make its files
    assert main(["verify", str(folder)]) == 0
    assert main(["doctor", str(folder)]) == 0
    assert main(["export", str(folder), str(tmp_path / "events.jsonl")]) == 0
    assert "event8" in (tmp_path / "events.jsonl").read_text()
    capsys.readouterr()
    (folder / JOURNAL).write_bytes(b"journal" * 1_000)
    assert main(["verify", str(folder)]) == 2
    assert "copy the folder" in " ".join(capsys.readouterr().err.split())


def test_a_reader_may_be_overtaken_by_a_start(failed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service restores the rows and wipes the mark, after a reader has opened the log."""

    def late(*arguments: object) -> object:
        SQLiteLog(failed).close()
        return missing_rows(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(migration, "missing_rows", late)
    with reading_log(failed) as log:
        head, rows = log.head, [row for part in log.rows() for row in part]
        assert log.chain_at(head.seq) == head.chain
    assert head == read_mark(failed)
    assert rows[-1][0] == head.seq


def test_a_full_disk_is_no_reason_to_accept_a_loss(failed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = (failed / MARK).read_bytes()

    def full(self: SQLiteLog, missing: object) -> None:
        raise DiskFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteLog, "_restore", full)
        with pytest.raises(DiskFull):
            FolderHome(failed).accept_loss()
    assert (failed / MARK).read_bytes() == mark
    assert ratings(failed) == 9


def test_an_accepted_loss_is_no_larger_than_it_must_be(tmp_path: Path) -> None:
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    folder.mkdir()
    create_log(folder, [[Row(b"genesis")]])
    with closing(SQLiteLog(folder)) as log:
        log.append([Row(b"first")])
        copy(folder, failed, LOG, JOURNAL)
        for number in range(10):
            log.append([Row(b"acknowledged", [(b"%16d" % number, b"x")])])
        log.append([Row(b"x" * 300_000)])  # it has no room in the mark: only the journal has it
        copy(folder, failed, MARK)
    with pytest.raises(DamagedLog, match="events up to 13 were acknowledged"):
        SQLiteLog(failed)
    before, now = FolderHome(failed).accept_loss()
    assert before is not None
    assert (before.seq, now.seq) == (13, 12)
    assert read_mark(failed) == now
    with closing(SQLiteLog(failed)) as log:
        assert (log.head, log.restored) == (now, 0)
        assert log.find(b"%16d" % 9) == (12, b"x")


def test_a_journal_that_is_damaged_behind_a_checkpoint_may_be_put_aside(tmp_path: Path) -> None:
    """The main file is newer than the beginning of such a journal, so SQLite mixes old pages with new ones."""
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    folder.mkdir()
    create_log(folder, [[Row(b"genesis")]])
    with closing(SQLiteLog(folder)) as log:
        for number in range(100):
            log.append([Row(b"x" * 500, [(b"%16d" % number, b"x")])])
        log._checkpoint()
        log.flush(wipe=True)
        copy(folder, failed, LOG, JOURNAL, MARK)
    journal = (failed / JOURNAL).read_bytes()
    (failed / JOURNAL).write_bytes(journal[: len(journal) // 3])
    with pytest.raises(DamagedLog, match="put that file aside in the copy"):
        SQLiteLog(failed)
    with pytest.raises(DamagedLog, match="put that file aside in the copy"), reading_log(failed):
        pass
    (failed / JOURNAL).unlink()
    with closing(SQLiteLog(failed)) as log:
        assert log.head.seq == 101
        assert sum(len(bodies) for _, bodies in log.read()) == 101


def test_a_loss_of_a_log_that_is_damaged_elsewhere_is_not_accepted(failed: Path) -> None:
    with closing(sqlite3.connect(failed / LOG)) as connection, connection:
        connection.execute("UPDATE log SET body = zeroblob(length(body)) WHERE seq = 2")
    mark = (failed / MARK).read_bytes()
    with pytest.raises(DamagedLog, match="at event 2"):
        FolderHome(failed).accept_loss()
    assert (failed / MARK).read_bytes() == mark


def test_without_room_to_restore_the_reason_is_told(tmp_path: Path) -> None:
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    folder.mkdir()
    create_log(folder, [[Row(b"genesis")]])
    with closing(SQLiteLog(folder)) as log:
        log.append([Row(b"first")])
        copy(folder, failed, LOG, JOURNAL)
        log.append([Row(b"x" * 100_000)])
        copy(folder, failed, MARK)
    with Growth(50_000), pytest.raises(DiskFull, match="the mark has rows"):
        SQLiteLog(failed)
    with closing(SQLiteLog(failed)) as log:
        assert log.head.seq == 3


def test_what_was_written_in_part_is_not_acknowledged(tmp_path: Path) -> None:
    """A disk that is nearly full takes the first part of a write, and reports no error."""
    create_log(tmp_path, [[Row(b"genesis")]])
    with Growth(40_000):
        log = SQLiteLog(tmp_path)
        assert (tmp_path / MARK).stat().st_size < PAGE
        for _ in range(5):
            log._erasing = True  # it empties the journal, which must stay below the limit
            log.append([Row(b"x" * 5_000)])
            assert read_mark(tmp_path) == log.head
        log.close()
    with closing(SQLiteLog(tmp_path)) as log:
        log.append([Row(b"later")])
        assert log._flushed < log.head.seq == 7  # there is room in the mark again
        assert read_mark(tmp_path) == log.head


def test_a_commit_needs_no_free_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark_module, "ROOM", 4 * PAGE)
    create_log(tmp_path, [[Row(b"genesis")]])
    with closing(SQLiteLog(tmp_path)) as log, Shortage():
        with pytest.raises(OSError, match="Too many open files"):
            os.open(tmp_path / LOG, os.O_RDONLY)
        for _ in range(20):
            log.append([Row(b"event")])
        assert log._flushed > 10


def test_a_journal_that_was_removed_is_written_into_the_main_file(tmp_path: Path) -> None:
    create_log(tmp_path, [[Row(b"genesis")]])
    with closing(SQLiteLog(tmp_path)) as log:
        log.append([Row(b"event")])
        (tmp_path / JOURNAL).unlink()
        log.append([Row(b"event")])
        log.flush()
        copy(tmp_path, tmp_path / "copy", LOG, MARK)
    with reading_log(tmp_path / "copy") as reader:
        assert reader.head.seq == 3


@pytest.mark.parametrize("failing", ["checkpoint", "synchronisation", "mark"])
def test_after_a_failure_the_mark_stays_as_it_is(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_log(tmp_path, [[Row(b"genesis")]])
    log = SQLiteLog(tmp_path)
    log.append([Row(b"first")])
    log.flush()
    before = (tmp_path / MARK).read_bytes()
    with monkeypatch.context() as patch:
        if failing == "checkpoint":
            log._connection.close()
        else:
            fails = log._journal if failing == "synchronisation" else log._mark._file
            number = fails.fileno()

            def fail(file: int) -> None:
                if file == number:
                    raise OSError(errno.EIO, "Input/output error")

            patch.setattr(f"albatross.service.storage.{'sqlite.log' if failing == 'synchronisation' else 'mark'}.synchronise", fail)
        with pytest.raises(StorageFailed):
            (log._checkpoint if failing == "checkpoint" else log.flush)()
        if failing == "mark":
            before = (tmp_path / MARK).read_bytes()  # it may have been written, or not
    for _ in range(2):
        log.close()
    assert (tmp_path / MARK).read_bytes() == before
    with closing(SQLiteLog(tmp_path)) as log:
        assert log.head.seq == 2
    log.close()


def test_a_start_that_fails_closes_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_log(tmp_path, [[Row(b"genesis")]])

    def fail(self: SQLiteLog) -> None:
        raise StorageFailed("no")

    before = os.open(os.devnull, os.O_RDONLY)
    os.close(before)
    with monkeypatch.context() as patch:
        patch.setattr(SQLiteLog, "_checkpoint", fail)
        with pytest.raises(StorageFailed):
            SQLiteLog(tmp_path)
    after = os.open(os.devnull, os.O_RDONLY)
    os.close(after)
    assert after == before


@pytest.mark.parametrize("content", [b"same", b"other"])
def test_handles_that_are_there_without_their_row(content: bytes, tmp_path: Path) -> None:
    folder, failed = tmp_path / "shop", tmp_path / "failed"
    folder.mkdir()
    create_log(folder, [[Row(b"genesis")]])
    with closing(SQLiteLog(folder)) as log:
        copy(folder, failed, LOG)
        log.append([Row(b"event", [(b"h" * 16, b"same")])])
        copy(folder, failed, MARK)
    with closing(sqlite3.connect(failed / LOG)) as connection, connection:
        connection.execute("INSERT INTO handles VALUES (?, 2, ?)", (b"h" * 16, content))
    if content == b"other":
        with pytest.raises(DamagedLog):
            SQLiteLog(failed)
        return
    with reading_log(failed) as reader:
        assert [line for part in reader.handles() for line in part] == [(b"h" * 16, 2, b"same")]
    with closing(SQLiteLog(failed)) as log:
        assert log.find(b"h" * 16) == (2, b"same")
        assert log.restored == 1


def test_after_a_start_nothing_depends_on_the_journal(failed: Path, tmp_path: Path) -> None:
    """The earlier process may have failed to synchronise it. What the operating system still shows of it need not be on disk."""
    with closing(SQLiteLog(failed)) as log:
        copy(failed, tmp_path / "again", LOG, MARK)
        head = log.head
    with reading_log(tmp_path / "again") as reader:
        assert reader.head == head


def test_a_start_writes_the_journal_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed synchronisation the system shows what never reached the disk, and calls it clean: only a new write gets it there."""
    folder, lost = tmp_path / "shop", tmp_path / "lost"
    folder.mkdir()
    create_log(folder, [[Row(b"genesis")]])
    library = shim(tmp_path)
    SQLiteLog(folder).close()
    with reading_log(folder):  # a checkpoint does not reach what is newer
        log = SQLiteLog(folder)
        log.append([Row(b"first")])
        log.flush()
        kept = seen(folder, tmp_path / "kept")  # the next synchronisation of the journal fails
        for number in range(10):
            log.append([Row(b"acknowledged%d" % number)])
        log._failed = True
        shown = seen(folder, tmp_path / "shown")
        disk = Disk({**kept, MARK: shown[MARK]})
        disk.now[JOURNAL].now = bytearray(shown[JOURNAL])
        for call in record(library, STARTER, folder):
            disk.do(call)
        make(lost, {name: bytes(file.kept) for name, file in disk.now.items() if not name.endswith("-shm")})
        log.close()
    with closing(SQLiteLog(lost)) as found:
        assert found.head.seq == 12


def test_without_room_for_the_journal_once_more_the_reason_is_told(failed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("albatross.service.storage.sqlite.log.synchronise", full)
        with pytest.raises(DiskFull, match="nothing is lost"):
            SQLiteLog(failed)
    assert ratings(failed) == 9


def test_a_mark_with_more_room_than_now_is_wiped_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_log(tmp_path, [[Row(b"genesis")]])
    log = SQLiteLog(tmp_path)
    for _ in range(9):
        log.append([Row(b"private")])
    log._failed = True  # so that the mark is left as it is
    log.close()
    assert b"private" in (tmp_path / MARK).read_bytes()[8 * PAGE :]
    monkeypatch.setattr(mark_module, "ROOM", 4 * PAGE)
    SQLiteLog(tmp_path).close()
    assert b"private" not in (tmp_path / MARK).read_bytes()


def test_a_transaction_cut_before_there_was_a_journal_is_undone(tmp_path: Path) -> None:
    """SQLite turns its write-ahead journal on by an ordinary transaction, with a journal that must be rolled back if it is cut."""
    folder, cut = tmp_path / "shop", tmp_path / "cut"
    folder.mkdir()
    create_log(folder, [[Row(b"x" * 1_000) for _ in range(50)]])
    with closing(sqlite3.connect(folder / LOG, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")  # it writes to the file before the end
        connection.execute("BEGIN")
        connection.execute("UPDATE log SET body = x'', chain = x''")
        copy(folder, cut, LOG, MARK, f"{LOG}-journal")
    shutil.copytree(cut, tmp_path / "second")
    with reading_log(cut) as log:
        assert log.head.seq == 50
        assert sum(len(bodies) for _, bodies in log.read()) == 50
    with closing(SQLiteLog(tmp_path / "second")) as log:
        assert sum(len(bodies) for _, bodies in log.read()) == 50


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.EIO])
def test_a_file_system_that_cannot_empty_the_cache_of_the_disk(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synchronised: list[int] = []

    def fail(file: int, command: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, "fcntl", fail)
    monkeypatch.setattr(files, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(os, "fsync", synchronised.append)
    if code == errno.EIO:
        with pytest.raises(OSError, match="Input/output"):
            files.synchronise(7)
    else:
        files.synchronise(7)
    assert synchronised == ([] if code == errno.EIO else [7])
