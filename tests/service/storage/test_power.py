"""Power failures at any moment: whatever they leave, each acknowledged event is there, bit for bit, and what was erased is not."""

import json
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from power import Call, Disk, content_of, make, record, shim

from albatross.service.storage.mark import MARK
from albatross.service.storage.migration import reading_log
from albatross.service.storage.sqlite.log import SQLiteLog, create_log
from albatross.service.storage.store import ReadableLog, Row, Written

SEEDS = range(int(os.environ.get("POWER_FAILURES", "3")))
STATES = 40
"""States after a failure, per recording."""
AGAIN = 2
"""Of these: how many fail again while they are opened."""
TOLD = "acknowledged"
"""A file with a line per acknowledgement: number and chain of the event, erased events, and those of them that leave no trace."""

WRITER = """
import json, os, random, sys
from pathlib import Path
from albatross.service.storage import mark
from albatross.service.storage.migration import reading_log
from albatross.service.storage.sqlite import log as log_module
from albatross.service.storage.sqlite.log import SQLiteLog
from albatross.service.storage.store import Row

folder, choice, durable = Path(sys.argv[1]), random.Random(int(sys.argv[2])), sys.argv[3] == "commit"
mark.ROOM, log_module.JOURNAL_BYTES = choice.choice([(1 << 18, 1 << 22), (6 * mark.PAGE, 40_000), (12 * mark.PAGE, 10_000)])
acknowledged = open(folder / "acknowledged", "ab", buffering=0)
erased, private, readers = set(), set(), []

connect = log_module.connect

def impatient(path):
    connection = connect(path)
    connection.execute("PRAGMA busy_timeout = 0")  # a checkpoint does not wait for readers
    return connection

log_module.connect = impatient

def acknowledge():
    if durable or log._flushed == log.head.seq:
        acknowledged.write(json.dumps([log.head.seq, log.head.chain.hex(), sorted(erased), sorted(private)]).encode() + b"\\n")

def new_row(seq):
    length = choice.choice([20, 100, 500, 3_000, 9_000] + [200_000] * (choice.random() < 0.05))
    content = b"private%d." % seq + choice.choice([b"x", bytes(1), mark.SIGN, choice.randbytes(97)]) * length
    return Row(content[:length], [(b"%15d%d" % (seq, part), b"private%d." % seq) for part in range(choice.randint(0, 2))])

def erase():
    gone = {seq: [] for seq in choice.sample(range(2, log.head.seq + 1), min(3, log.head.seq - 1)) if seq not in erased}
    for part in log.handles():
        for handle, seq, _ in sorted(part):
            gone.get(seq, []).append(handle)
    if wholly := choice.random() < 0.8:
        private.update(gone)
    erased.update(gone)
    log.erase(list(gone.items()), Row(b"tombstone"), wholly)

log = SQLiteLog(folder, durable)
for _ in range(60):
    what = choice.random()
    if what < 0.06 and log.head.seq > 2:
        erase()
    elif what < 0.10:
        readers.append(reading_log(folder))
        readers[-1].__enter__()
    elif what < 0.14 and readers:
        readers.pop().__exit__(None, None, None)
    elif what < 0.17:
        log.close()
        log = SQLiteLog(folder, durable)
    elif what < 0.20:
        log.flush()
    else:
        log.append([new_row(log.head.seq + 1 + number) for number in range(choice.choice([1, 1, 2, 8]))])
    if not durable and choice.random() < 0.3:
        log.keep()
    acknowledge()
if choice.random() < 0.5:
    log.flush()
    log.close()
    acknowledge()
os._exit(0)
"""

STARTER = """
import os, sys
from pathlib import Path
from albatross.service.storage.sqlite.log import SQLiteLog
SQLiteLog(Path(sys.argv[1]))
os._exit(0)
"""


class Content(NamedTuple):
    """Of a log."""

    rows: list[Written]
    handles: dict[bytes, tuple[int, bytes]]


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder that is quick to synchronise, if there is one: what a failure leaves is decided here."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)


@pytest.mark.parametrize("durability", ["commit", "relaxed"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_power_failure_at_any_moment_loses_nothing(seed: int, durability: str, tmp_path: Path, in_memory: Path) -> None:
    library, folder, failed = shim(tmp_path), in_memory / "shop", in_memory / "failed"
    folder.mkdir()
    create_log(folder, [[Row(b"genesis")]])
    (folder / TOLD).touch()
    before, choice = content_of(folder), random.Random(seed)
    calls = record(library, WRITER, folder, str(seed), durability)
    with reading_log(folder) as log:
        truth = read(log)
    states = list(states_of(before, calls, choice, STATES))
    for number, state in enumerate(states):
        check(failed, state, truth)
        if number % (STATES // AGAIN) == 0:
            starting = in_memory / "starting"
            make(starting, state)
            for again in states_of(state, record(library, STARTER, starting), choice, STATES // 10):
                check(failed, {**again, TOLD: state[TOLD]}, truth)


def states_of(before: dict[str, bytes], calls: list[Call], choice: random.Random, number: int) -> Iterator[dict[str, bytes]]:
    """What a power failure could leave, at some moments of a recording."""
    moments, disk, told = choice.choices(range(len(calls) + 1), k=number), Disk(before), b""
    for moment in range(len(calls) + 1):
        for _ in range(moments.count(moment)):
            yield {**disk.after_failure(choice), TOLD: told}
        if moment < len(calls):
            call = calls[moment]
            if call.name == TOLD:
                told += call.content
            elif not call.name.endswith("-shm"):  # the operating system forgets it, too
                disk.do(call)


def read(log: ReadableLog) -> Content:
    for _ in log.read():  # each row must be sound
        pass
    rows = [row for part in log.rows() for row in part]
    return Content(rows, {handle: (row, content) for part in log.handles() for handle, row, content in part})


def check(folder: Path, state: dict[str, bytes], truth: Content) -> None:
    lines = state[TOLD].splitlines()
    last, chain, erased, private = json.loads(lines[-1]) if lines else (1, truth.rows[0][3].hex(), [], [])
    secrets = [b"private%d." % seq for seq in private]
    assert not any(secret in state[MARK] for secret in secrets)
    make(folder, state)
    with reading_log(folder) as log:
        before = read(log)
    with closing(SQLiteLog(folder)) as log:
        found = read(log)
        log.append([Row(b"later")])
    with reading_log(folder) as log:
        assert log.head.seq == len(found.rows) + 1
    assert found == before
    assert found.rows[last - 1][3].hex() == chain
    for row, known in zip(found.rows, truth.rows, strict=False):
        assert (row[0], *row[2:]) == (known[0], *known[2:])
        assert row[1] is None if row[0] in erased else row[1] == known[1] or known[1] is None
    for handle, (seq, content) in truth.handles.items():
        if seq <= len(found.rows):
            assert found.handles[handle] == (seq, content) or (content == b"" and seq not in erased)
    for name, content in content_of(folder).items():
        assert name == TOLD or not any(secret in content for secret in secrets), name
