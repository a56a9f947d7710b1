"""Snapshots: whatever happens to them, the next start has the same state, or says what is lost."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from albatross.policies.alb import ALB
from albatross.service.api.answers import Decision
from albatross.service.api.requests import AskSeries, AskVersion, Feedback, Recommend, Request, RetireItem, TakeSnapshot, ViewUser
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.recovering.recovery import recover
from albatross.service.storage import snapshots
from albatross.service.storage.folder import LOG, SNAPSHOTS
from albatross.service.storage.mark import MARK, read_mark, write_mark
from albatross.service.storage.reading import read_genesis
from albatross.service.storage.sqlite.log import SQLiteLog
from albatross.service.storage.store import DamagedLog

OPTIONS = Options(scale=(1, 5), policy=ALB(rank=2), snapshot_every=0)
TAIL = 200
"""Bytes at the end that are damaged one by one."""
FLIPS = 150


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snapshots") / "shop"
    with Engine(folder, OPTIONS) as engine:
        engine.wait_ready()
        for number in range(40):
            engine.ask(Feedback(f"e{number}", 1 + number % 5, user=f"u{number % 4}", item=f"i{number % 9}"))
            engine.ask(Recommend(f"u{number % 5}"))
            if number == 20:
                engine.ask(TakeSnapshot())
        engine.ask(RetireItem("i3"))
    return folder


def started(folder: Path) -> tuple[str, int, int]:
    """The state id after a start, the snapshot used, and how many were skipped; without an engine around it, which is quicker."""
    store = SQLiteLog(folder)
    try:
        recovered = recover(folder, store, read_genesis(store, str(folder)))
    finally:
        store.close()
    used = 0 if recovered.snapshot is None else recovered.snapshot.seq
    return recovered.model.state_id, used, len(recovered.complaints)


def test_a_damaged_snapshot_is_skipped(shop: Path, tmp_path: Path) -> None:
    """Every byte of the tail, and random bits, of the newest snapshot and of its manifest."""
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    expected, newest, _ = started(folder)
    older = min(manifest.seq for _, manifest in snapshots.manifests(folder)[0])
    assert older < newest
    random = np.random.default_rng(0)
    for path in (folder / SNAPSHOTS).glob(f"*{newest}.*"):
        content = path.read_bytes()
        tail = range(max(len(content) - TAIL, 0), len(content))
        for position in [*tail, *random.integers(len(content), size=FLIPS).tolist()]:
            damaged = bytearray(content)
            damaged[position] ^= 1 << int(random.integers(8))
            path.write_bytes(damaged)
            assert started(folder) == (expected, older, 1), (path, position)
        path.write_bytes(content)
    assert started(folder) == (expected, newest, 0)


def test_a_torn_or_missing_snapshot_is_skipped(shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    expected, newest, _ = started(folder)
    for path in sorted((folder / SNAPSHOTS).glob(f"*{newest}.*")):
        content = path.read_bytes()
        for length in np.linspace(0, len(content) - 1, 30).astype(int).tolist():
            path.write_bytes(content[:length])
            state, used, _ = started(folder)
            assert (state, used < newest) == (expected, True)
        path.unlink()
        state, used, _ = started(folder)
        assert (state, used < newest) == (expected, True)
        path.write_bytes(content)
    (folder / SNAPSHOTS / "000000000000999.npz.unfinished").write_bytes(b"torn")
    assert started(folder) == (expected, newest, 0)


def test_everything_else_is_in_the_snapshot_too(shop: Path, tmp_path: Path) -> None:
    """What waits for a rating, what is retired, how it went: with and without a snapshot."""
    answers = []
    for name in ("with", "without"):
        shutil.copytree(shop, tmp_path / name)
        if name == "without":
            snapshots.remove_all(tmp_path / name)
        with Engine(tmp_path / name) as engine:
            engine.wait_ready()
            requests: list[Request[Any]] = [
                AskVersion(),
                AskSeries(),
                ViewUser("u1"),
                Recommend("u4", n=4, exclude_seen="pending"),
                Recommend("u4", explain=True),
            ]
            found: list[Any] = [engine.ask(request) for request in requests]
            # Ids name the life of the engine that gave them.
            answers.append([replace(one, decision_id="") if isinstance(one, Decision) else one for one in found])
    assert answers[0] == answers[1]


def test_three_are_kept(tmp_path: Path) -> None:
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        for number in range(6):
            engine.ask(Feedback(f"e{number}", 3, user="ann", item="tea"))
            engine.ask(TakeSnapshot())
    kept = sorted(path.name for path in (tmp_path / "shop" / SNAPSHOTS).iterdir())
    assert len(kept) == 2 * snapshots.KEEP
    assert kept[-1].startswith("000000000000008")


def test_snapshots_are_written_on_the_way(tmp_path: Path) -> None:
    with Engine(tmp_path / "shop", Options(scale=(1, 5), policy=ALB(rank=2), snapshot_every=10)) as engine:
        engine.wait_ready()
        for number in range(25):
            engine.ask(Feedback(f"e{number}", 3, user="ann", item="tea"))
        engine._aside.join_writer()
        assert snapshots.manifests(tmp_path / "shop")[0]
        assert not engine.complaints


def test_a_log_that_lost_its_end_is_refused(shop: Path, tmp_path: Path) -> None:
    """A snapshot knows of events that the log has no more: they were acknowledged."""
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    store = SQLiteLog(folder)
    store._connection.execute("DELETE FROM log WHERE seq > 60")
    store.close()
    with pytest.raises(DamagedLog, match="the log ends at event 60"):
        started(folder)


def test_a_log_that_lost_one_event_is_refused(shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    store = SQLiteLog(folder)
    head = store.head.seq
    for table in ("log", "handles"):
        store._connection.execute(f"DELETE FROM {table} WHERE seq = ?", (head,))
    store.close()
    with pytest.raises(DamagedLog, match=f"the log ends at event {head - 1}, but events up to {head} were acknowledged"):
        started(folder)


def test_a_log_that_ends_otherwise_than_was_acknowledged_is_refused(shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    head = read_mark(folder)
    assert head is not None
    write_mark(folder, head._replace(chain=bytes(16)))
    with pytest.raises(DamagedLog, match=f"event {head.seq} is not the one that was acknowledged"):
        started(folder)


def test_a_snapshot_by_other_code_is_not_believed(shop: Path, tmp_path: Path) -> None:
    """Its last bits may be others: the log alone says what this code would have learned."""
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    expected, newest, _ = started(folder)
    for path, manifest in snapshots.manifests(folder)[0]:
        snapshots.write(folder, manifest._replace(kernel="other"), snapshots.read(path, manifest))
    assert started(folder) == (expected, 0, 2)
    assert newest > 0


def test_a_snapshot_is_on_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("there is no /proc to see which file is synchronised")
    synced: list[str] = []
    monkeypatch.setattr("os.fsync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink().name))
    path = snapshots.write(tmp_path, snapshots.Manifest(7, "", "", "", (0, 0)), {"numbers": np.arange(3)})
    arrays, folder, manifest, again = synced
    assert arrays.startswith(f".{path.name}.")
    assert manifest.startswith(f".{path.with_suffix('.json').name}.")
    assert folder == again == SNAPSHOTS


def test_the_log_of_another_folder_does_not_take_the_snapshot(shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    with Engine(tmp_path / "other", OPTIONS) as engine:
        engine.wait_ready()
        for number in range(100):
            engine.ask(Feedback(f"e{number}", 3, user="ann", item="tea"))
        expected = engine.ask(AskVersion()).state_id
    for name in (LOG, MARK):
        shutil.copy(tmp_path / "other" / name, folder / name)
    state, used, skipped = started(folder)
    assert (state, used, skipped) == (expected, 0, 2)
