"""Shards: what an exchange takes, and what splitting users costs in regret.

`python -m benchmarks shards` measures an exchange. `python -m benchmarks.cluster.shards STUDY FOLDER` prints, of a study that was run on
one shard and on more, by how many percent the regret differs from that of one shard, paired by seed.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from albatross.core.agent import Agent
from albatross.core.policy import Policy
from albatross.core.sharing.exchange import Exchange, Payload
from albatross.core.streams import stream
from albatross.policies.alb import ALB
from albatross.policies.mean_field import MeanField
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study, read_study
from albatross.studies.showing import label
from albatross.studies.statistics import paired_difference
from albatross.studies.trials import Result
from benchmarks.measuring import Line, Quantity, cpu_seconds

N_ITEMS, N_USERS, SHARDS = 100_000, 20_000, 4
N_RATINGS, ROUNDS = 10_000, 3
MOST_SECONDS = 0.1
STEPS = (10_000, 25_000)


def exchange() -> Iterator[Line]:
    """The work of one shard for an exchange of 100,000 items of rank 5 after 10,000 ratings: take, write, read all, fold."""
    for policy in (ALB(rank=5, ridge=0.1), MeanField(rank=5)):
        seconds, size = _exchange(policy)
        yield Line.at_most(
            f"exchange, {policy.policy_name()}, {SHARDS} shards", Quantity("median", seconds), Quantity("limit", MOST_SECONDS), 1.0
        )
        yield Line(f"payload, {policy.policy_name()}", Quantity("of a shard", size, "B"), Quantity("its state", _state_size(policy), "B"))


def _exchange(policy: Policy) -> tuple[float, float]:
    random = np.random.default_rng(0)
    shards = [Exchange(Agent(policy, N_USERS, N_ITEMS), shard, SHARDS) for shard in range(SHARDS)]
    seconds, sizes = [], []
    for number in range(ROUNDS + 1):  # the first compiles
        for shard in shards:
            count = N_RATINGS // SHARDS
            rewards = random.integers(1, 6, size=count).astype(float)
            shard.agent.replay(random.integers(N_USERS, size=count), random.integers(N_ITEMS, size=count), rewards)
        contents = [shard.take().to_bytes() for shard in shards]
        sizes.append(float(np.mean([len(content) for content in contents])))

        def one_shard(contents: Sequence[bytes] = contents) -> None:
            shards[0].take().to_bytes()
            shards[0].fold([Payload.from_bytes(content) for content in contents])

        taken = cpu_seconds(one_shard)
        if number > 0:
            seconds.append(taken)
        for shard in shards[1:]:
            shard.fold([Payload.from_bytes(content) for content in contents])
    return float(np.median(seconds)), sizes[-1]


def _state_size(policy: Policy) -> float:
    state = Agent(policy, N_USERS, N_ITEMS).state
    return float(sum(array.nbytes for array in state if isinstance(array, np.ndarray)))


def differences(planned: Study, journal: Journal) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield f"| data set | policy | seeds | {' | '.join(f'one shard at {step:,} | difference' for step in STEPS)} |"
    yield "|" + " --- |" * (3 + 2 * len(STEPS))
    for cell in planned.cells:
        alone = Cell(cell.dataset, cell.environment, cell.policy)
        if cell.shards > 1:
            ours, theirs = (_by_seed(planned, each, journal) for each in (cell, alone))
            shared = sorted(ours.keys() & theirs.keys())
            if len(shared) > 1:
                columns = [_columns([ours[seed] for seed in shared], [theirs[seed] for seed in shared], step) for step in STEPS]
                words = label(cell.policy, cell.shards, cell.exchange)
                yield f"| {cell.dataset} | {words} | {len(shared)} | {' | '.join(columns)} |"


def _columns(ours: Sequence[Result], theirs: Sequence[Result], step: int) -> str:
    mine, other = ([result.regret_at(step) for result in results] for results in (ours, theirs))
    mean = float(np.mean(other))
    percent, low, high = (100.0 * float(number) / mean for number in paired_difference(mine, other, stream(0, "bootstrap")))
    return f"{mean:,.0f} | {percent:+.1f} % [{low:+.1f}, {high:+.1f}]"


def _by_seed(planned: Study, cell: Cell, journal: Journal) -> dict[int, Result]:
    return {trial.seed: result for trial, result in journal.finished(planned.trials_of(cell)).items()}


if __name__ == "__main__":
    file, folder = sys.argv[1:]
    print(*differences(read_study(Path(file)), Journal(folder)), sep="\n")
