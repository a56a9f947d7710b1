"""The same trials on a cluster of two nodes, one of which dies."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes on this machine, with one core each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    nodes: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


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
