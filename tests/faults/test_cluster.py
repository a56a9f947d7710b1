"""Parts of a cluster are killed and paused while sixteen clients write. `make chaos-cluster` does the same a thousand times."""

import asyncio
from pathlib import Path

import pytest
from faults.cluster import torment

from albatross.core.errors import InvalidInput
from albatross.service.tools.private_postgres import PrivatePostgres, binaries

KILLS, PAUSES, SHARDS = 4, 1, 2


@pytest.mark.xdist_group("ray")
def test_nothing_acknowledged_is_lost_whatever_part_of_a_cluster_dies(tmp_path: Path) -> None:
    try:
        binaries()
    except InvalidInput as missing:
        pytest.skip(str(missing))
    with PrivatePostgres() as server:
        verdict = asyncio.run(torment(server.create_database("service"), server, tmp_path, KILLS, PAUSES, SHARDS))
    assert verdict.faults == {"shard": 2, "front": 1, "postgres": 1, "pause": 1}
    assert verdict.acknowledged > 100
    assert verdict.sound, str(verdict)
