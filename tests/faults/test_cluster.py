"""Parts of a cluster are killed and paused while sixteen clients write. `make chaos-cluster` does the same with a thousand faults."""

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path

import pytest
from faults.cluster import KINDS, NODES, Machines, planned, torment

from albatross.core.errors import InvalidInput
from albatross.service.tools.private_postgres import PrivatePostgres, binaries

FAULTS, PAUSES, SHARDS = 100, 1, 4
HARM = Counter(shard=16, front=8, exchange=72, postgres=2, raylet=1, node=1)
"""Of a hundred faults: few processes are killed, because each takes seconds of processor time to start again."""


@pytest.mark.xdist_group("ray")
def test_nothing_acknowledged_is_lost_whatever_part_of_a_cluster_dies(tmp_path: Path) -> None:
    """Shards, fronts, raylets and whole nodes are killed, PostgreSQL is restarted, and a paused owner of a shard wakes up too late."""
    try:
        binaries()
    except InvalidInput as missing:
        pytest.skip(str(missing))
    chance = random.Random(0)
    rounds = planned(FAULTS, chance, machines=True, shards=SHARDS, harm=HARM)
    with PrivatePostgres() as server, contextlib.closing(Machines(NODES)) as machines:
        address = server.create_database("service")
        verdict = asyncio.run(torment(address, server, tmp_path, rounds, PAUSES, SHARDS, chance, machines))
    assert set(verdict.faults) == {*KINDS, "pause"}
    assert sum(verdict.faults.values()) >= 0.75 * FAULTS  # a connection that is gone already is not cut
    assert verdict.acknowledged > 100
    assert verdict.sound, str(verdict)
