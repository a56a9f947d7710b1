"""The same trials on a cluster of two nodes, one of which dies."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from albatross.core.errors import InvalidInput
from albatross.environments.synthetic import Uniform
from albatross.policies.alb import ALB
from albatross.policies.random import Random
from albatross.studies.execution import execute
from albatross.studies.journal import RESULTS, Journal
from albatross.studies.trials import Trial

ray = pytest.importorskip("ray", reason="needs the extra: pip install '.[ray]'")

WORLD = Uniform(n_users=20, n_items=20)
TRIALS = [Trial(policy, WORLD, 20_000, seed) for policy in (ALB(rank=2), Random()) for seed in range(8)]


CLIENT = """
import sys
from albatross.environments.synthetic import Uniform
from albatross.policies.random import Random
from albatross.studies.execution import execute
from albatross.studies.trials import Trial

trials = [Trial(Random(), Uniform(n_users=5, n_items=6), 200, seed) for seed in range(3)]
for engine in (sys.argv[1], "local"):
    results = dict(execute(trials, jobs=1, engine=engine))
    print([results[position].regret.tolist() for position in range(3)])
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Nodes(NamedTuple):
    cluster: Any
    client_port: int


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """Two nodes on this machine, with one core each. A client is served only where the port of Ray's agent is given."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        port = free_port()
        head = {"num_cpus": 1, "include_dashboard": False, "ray_client_server_port": port, "runtime_env_agent_port": free_port()}
        found: Any = Cluster(initialize_head=True, head_node_args=head)
        found.add_node(num_cpus=1)
        yield Nodes(found, port)
        found.shutdown()


@pytest.fixture
def cluster(nodes: Nodes) -> Iterator[Any]:
    ray.init(address=nodes.cluster.address, log_to_driver=False, logging_level="ERROR")
    yield nodes.cluster
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.xdist_group("ray")
def test_a_cluster_elsewhere_is_reached_by_its_address(nodes: Nodes) -> None:
    pytest.importorskip("grpc", reason="needs the client of Ray: pip install '.[ray]'")
    command = [sys.executable, "-c", CLIENT, f"ray://127.0.0.1:{nodes.client_port}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    there, here = done.stdout.splitlines()[-2:]
    assert there == here


@pytest.mark.filterwarnings("ignore")  # Ray's own: sockets and deprecated calls
@pytest.mark.xdist_group("ray")
def test_a_node_dies_and_nothing_is_lost_and_nothing_is_there_twice(cluster: Any, tmp_path: Path) -> None:
    journal, seen = Journal(tmp_path / "cluster"), []
    for position, result in execute(TRIALS, jobs=2, engine="ray"):
        journal.add(TRIALS[position], result)
        seen.append(position)
        if len(seen) == 3:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    assert sorted(seen) == list(range(len(TRIALS)))
    journal.write_parquet(TRIALS)
    alone = Journal(tmp_path / "alone")
    for position, result in execute(TRIALS, jobs=1):
        alone.add(TRIALS[position], result)
    alone.write_parquet(TRIALS)
    assert (tmp_path / "cluster" / RESULTS).read_bytes() == (tmp_path / "alone" / RESULTS).read_bytes()


def test_an_engine_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="engine is 'dask'; accepted: local, ray, ray://host:port"):
        list(execute(TRIALS, jobs=1, engine="dask"))
