"""Each promise of the service, as its sentence says."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from places import Place

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.service.api.errors import EventReused
from albatross.service.api.requests import AskVersion, Feedback, ListEvents, Recommend, TakeSnapshot
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.storage import mark, snapshots
from albatross.service.storage.folder import LOG
from albatross.service.storage.mark import read_mark, write_mark
from albatross.service.storage.sqlite import log
from albatross.service.storage.store import DamagedLog

OPTIONS = Options(scale=(1, 5), policy=ALB(rank=2), snapshot_every=0)
WRITER = """
import os, sys
from albatross import Recommender
from albatross.core.errors import InvalidInput
shop = Recommender(sys.argv[1], scale=(1, 5), durability=sys.argv[2])
for number in range(20):
    print(shop.rate_item(f"user{number % 3}", f"item{number % 7}", 1 + number % 5, event_id=f"event{number}").seq, flush=True)
print(shop.version().state_id, flush=True)
os.kill(os.getpid(), 9)
"""


def rate(engine: Engine, number: int) -> None:
    engine.ask(Feedback(f"event{number}", 1 + number % 5, user=f"user{number % 3}", item=f"item{number % 7}"))


def state_id(engine: Engine) -> str:
    state = engine.ask(AskVersion()).state_id
    assert isinstance(state, str)
    return state


@pytest.mark.parametrize("durability", ["commit", "relaxed"])
def test_1_what_was_acknowledged_survives_a_kill(durability: str, tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", WRITER, str(tmp_path / "shop"), durability], capture_output=True, text=True, check=False)
    *acknowledged, state = run.stdout.split()
    assert run.returncode == -9
    assert len(acknowledged) == 20, run.stderr
    with Recommender(tmp_path / "shop") as shop:
        assert shop.version().ratings == 20
        assert shop.version().state_id == state
        assert shop.version().seq == int(acknowledged[-1])


def test_1_commits_are_synchronised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before an answer the mark is, with the rows in it; SQLite leaves the journal to the checkpoint, or to once a second."""
    synchronised: list[str] = []
    monkeypatch.setattr(mark, "synchronise", lambda file: synchronised.append(Path(f"/proc/self/fd/{file}").readlink().name))
    monkeypatch.setattr(log, "FLUSH_SECONDS", 1e9)
    for durability, expected in (("commit", ["mark"]), ("relaxed", [])):
        with Engine(tmp_path / durability, Options(scale=(1, 5), durability=durability)) as engine:
            engine.wait_ready()
            rate(engine, 0)  # behind it relaxed durability is synchronised for the first time
            engine.ask(AskVersion())
            for number in range(1, 4):
                synchronised.clear()
                rate(engine, number)
                assert synchronised == expected
            connection = engine._store._connection  # type: ignore[attr-defined]
            assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_2_the_same_event_is_applied_once_for_ever(place: Place) -> None:
    """Deliveries, shuffled and repeated across restarts, give the state of the run in which each came once."""
    events = [Feedback(f"event{number}", 1 + number % 5, user=f"user{number % 3}", item=f"item{number % 7}") for number in range(40)]
    random = np.random.default_rng(0)
    with Engine(place / "once", OPTIONS) as once:
        once.wait_ready()
        for event in events:
            once.ask(event)
        expected = state_id(once)
    for part in range(4):
        with Engine(place / "often", OPTIONS) as often:
            often.wait_ready()
            for event in events[10 * part : 10 * part + 10]:
                assert often.ask(event).applied
                again = events[int(random.integers(10 * part + 1))]
                answer = often.ask(again)
                assert answer.duplicate or again is event
    with Engine(place / "often", OPTIONS) as often:
        often.wait_ready()
        for number in random.permutation(40):
            answer = often.ask(events[number])
            assert answer.duplicate
            assert answer.applied
        assert state_id(often) == expected
        with pytest.raises(EventReused):
            often.ask(Feedback("event0", 5, user="user0", item="item0"))
        assert state_id(often) == expected


def test_3_a_recommendation_after_a_feedback_knows_it(place: Place) -> None:
    """From another thread, too, while others write."""
    with Engine(place / "shop", OPTIONS) as engine:
        engine.wait_ready()
        rate(engine, 0)
        failures: list[str] = []

        def live(name: str) -> None:
            for number in range(25):
                accepted = engine.ask(Feedback(f"{name} {number}", 3, user=name, item=f"item{number % 7}"))
                decision = engine.ask(Recommend(name))
                if decision.model_seq < accepted.seq or decision.user_ratings != number + 1:
                    failures.append(f"{decision} after {accepted}")

        threads = [threading.Thread(target=live, args=(f"thread{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures


def test_4_one_total_order(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers without gaps, in the order of acknowledgement, even if the clock runs backwards."""
    times = iter(range(10_000, 0, -1))
    monkeypatch.setattr("albatross.service.engine.group.time.time", lambda: float(next(times)))
    with Engine(place / "shop", OPTIONS) as engine:
        engine.wait_ready()
        seqs = [engine.ask(Feedback(f"event{number}", 3, user="ann", item="tea")).seq for number in range(10)]
        assert seqs == list(range(3, 13))  # after the genesis and the item
        before = state_id(engine)
    snapshots.remove_all((place / "shop").folder)
    with Engine(place / "shop") as engine:
        engine.wait_ready()
        assert state_id(engine) == before


def test_5_unanswered_recommendations_teach_nothing(place: Place) -> None:
    with Engine(place / "shop", OPTIONS) as engine:
        engine.wait_ready()
        for number in range(12):
            rate(engine, number)
        before = state_id(engine)
        for number in range(200):
            engine.ask(Recommend(f"stranger{number}" if number % 2 else "user1", n=1 + number % 3))
        assert state_id(engine) == before
        assert engine.ask(AskVersion()).users == 3
        answered, twin = (engine.ask(Feedback(f"last{number}", 4, user="user1", item="item3")) for number in range(2))
        assert twin.seq == answered.seq + 1


def test_5_unanswered_recommendations_leave_the_log_after_their_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine(place / "shop", replace(OPTIONS, retention=60.0)) as engine:
        engine.wait_ready()
        shown = engine.ask(Recommend("ann", candidates=["tea", "mate"]))
        engine.ask(Feedback("answer", 4, decision_id=shown.decision_id))
        for number in range(5):
            engine.ask(Recommend(f"stranger{number}", candidates=["tea", "mate"], request_id=f"request{number}"))
        head = engine.ask(AskVersion()).seq
        later = time.time() + 61.0
        monkeypatch.setattr("albatross.service.engine.learned.retention.time.time", lambda: later)
        rate(engine, 0)  # behind it, the engine looks
        assert engine.ask(AskVersion()).seq > head + 1
        assert "stranger" not in str(engine.ask(ListEvents(50)).events)
        assert engine.ask(AskVersion()).decisions == 6
        state = state_id(engine)
    assert main(["verify", str(place / "shop")]) == 0
    with Engine(place / "shop", OPTIONS) as engine:
        engine.wait_ready()
        assert state_id(engine) == state


def test_6_a_restart_needs_no_snapshot(place: Place) -> None:
    with Engine(place / "shop", OPTIONS) as engine:
        engine.wait_ready()
        for number in range(10):
            rate(engine, number)
        engine.ask(TakeSnapshot())
        for number in range(10, 20):
            rate(engine, number)
            engine.ask(Recommend("user1"))
        expected, shown = state_id(engine), engine.ask(Recommend("user2", request_id="r"))
    for remove in (False, True):
        if remove:
            snapshots.remove_all((place / "shop").folder)
        with Engine(place / "shop", OPTIONS) as engine:
            engine.wait_ready()
            assert state_id(engine) == expected
            assert engine.ask(Recommend("user2", request_id="r")) == shown
            assert engine.ask(AskVersion()).decisions == 11


def test_6_damage_in_the_middle_is_refused_with_its_place(tmp_path: Path) -> None:
    """Bits of the log, one at a time: a start that succeeds has lost nothing; one that does not says where."""
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        for number in range(20):
            rate(engine, number)
        expected = state_id(engine)
    log = tmp_path / "shop" / LOG
    content = log.read_bytes()
    random = np.random.default_rng(0)
    snapshots.remove_all(tmp_path / "shop")
    middle = content.index(b'"event9"')
    complaints: dict[int, str] = {}
    for position in [middle, *random.integers(100, len(content), 60).tolist()]:
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(random.integers(8))
        log.write_bytes(damaged)
        try:
            with Engine(tmp_path / "shop", OPTIONS) as engine:
                engine.wait_ready()
                assert state_id(engine) == expected
        except InvalidInput as refusal:
            complaints[position] = str(refusal)
        snapshots.remove_all(tmp_path / "shop")
    assert "damaged at event 18" in complaints[middle]  # the genesis, seven items, and the tenth rating
    assert len(complaints) > 5
    assert all("damaged" in complaint for complaint in complaints.values()), complaints


def test_6_damage_in_the_journal_is_mended_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SQLite would silently drop what stands behind a damaged frame, or is torn off, although it was acknowledged."""
    folder = tmp_path / "shop"
    subprocess.run([sys.executable, "-c", WRITER, str(folder), "commit"], capture_output=True, check=False)
    journal = folder / f"{LOG}-wal"
    content, whole_log, whole_mark = journal.read_bytes(), (folder / LOG).read_bytes(), (folder / "mark").read_bytes()
    head = read_mark(folder)
    assert head is not None
    frames = [32 + 4120 * number for number in range((len(content) - 32) // 4120)]
    flips = [bytes([*content[:at], content[at] ^ 1, *content[at + 1 :]]) for at in (len(content) // 2, frames[-2] + 100, frames[-1] + 100)]
    for journal_left in (*flips, content[:-100], content[: len(content) // 2], bytes(len(content)), b"", None):
        for rows_in_the_mark in (False, True):
            (folder / LOG).write_bytes(whole_log)
            if journal_left is None:
                journal.unlink(missing_ok=True)
            else:
                journal.write_bytes(journal_left)
            (folder / "mark").write_bytes(whole_mark)
            if not rows_in_the_mark:
                write_mark(folder, head)
            for command in (["verify"], ["export", str(tmp_path / "events.jsonl")], ["doctor"]):
                capsys.readouterr()
                assert main([command[0], str(folder), *command[1:]]) == (0 if rows_in_the_mark else 2)
                if rows_in_the_mark and command != ["export", str(tmp_path / "events.jsonl")]:
                    assert "the next start restores them" in capsys.readouterr().out
            if not rows_in_the_mark:
                with pytest.raises(DamagedLog, match="were acknowledged"):
                    Engine(folder)
    (folder / LOG).write_bytes(whole_log)
    journal.write_bytes(content)
    with Recommender(folder) as shop:
        assert shop.version().ratings == 20


def test_7_verify_rebuilds_the_same_state_in_another_process(tmp_path: Path) -> None:
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        for number in range(30):
            rate(engine, number)
            engine.ask(Recommend(f"user{number % 5}"))
        expected = state_id(engine)
    program = f"import sys, albatross.cli; sys.exit(albatross.cli.main(['verify', {str(tmp_path / 'shop')!r}]))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert expected in run.stdout


def test_8_research_imports_nothing_of_the_service() -> None:
    program = "import sys, albatross; assert not [m for m in sys.modules if m.startswith(('albatross.service', 'msgspec', 'sqlite3'))]"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_8_no_pickle(tmp_path: Path) -> None:
    """Snapshots are read with pickle refused, and hold no objects."""
    with Engine(tmp_path / "shop", OPTIONS) as engine:
        engine.wait_ready()
        rate(engine, 0)
        path = engine.ask(TakeSnapshot()).path
    with np.load(path, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)
