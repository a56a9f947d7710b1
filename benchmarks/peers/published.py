"""Published code of two papers beside ours, on the same ratings: `python -m benchmarks.peers.published FOLDER [STEPS]`.

FOLDER is a checkout of BanditLib (github.com/HCDM/BanditLib), by the authors of FactorUCB, which also has a CLUB. Both begin with the same
vectors as ours and meet the same users of MovieLens 100K, 40 of them, because theirs takes the square of users times coordinates.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from albatross import Agent
from albatross.core.ratings import restricted
from albatross.core.streams import stream
from albatross.datasets import create
from albatross.environments.ratings import Ratings
from albatross.environments.world import arrivals, offered
from albatross.policies.club import CLUB
from albatross.policies.factor_ucb import FactorUCB

N_USERS, RANK, RIDGE = 40, 5, 0.1
BASE_TEN = float(np.sqrt(np.log(10.0)))
"""Theirs takes logarithms to the base of ten in the width: α is given so that widths agree."""


def load(folder: Path) -> tuple[Any, Any]:
    """Their two classes. Modules that their base class imports for neural models are not needed, and replaced by empty ones."""
    for name in ("torch", "torch.nn", "torch.optim", "torch.utils", "torch.utils.data", "backpack"):
        module = ModuleType(name)
        sys.modules.setdefault(name, module)
        module.__dict__.update(Module=object, Dataset=object, extend=None, nn=module, optim=module, utils=module, data=module)
    sys.path[:0] = [str(folder), str(folder / "lib")]
    return import_module("factorUCB").FactorUCBAlgorithm, import_module("CLUB").CLUBAlgorithm


class Contest:
    """Forty users of MovieLens 100K, the same arrivals for everybody."""

    def __init__(self, n_steps: int) -> None:
        table = create("movielens-100k").load()
        environment = Ratings(restricted(table, users=np.arange(N_USERS), items=np.unique(table.items[table.users < N_USERS])))
        self.world, self.n_items = environment.world(0), environment.n_items
        self.users = arrivals(self.world, stream(0, "arrivals"), n_steps).tolist()
        self.pool = [SimpleNamespace(id=item, contextFeatureVector=np.zeros(0)) for item in range(self.n_items)]
        """The items as their code expects them."""

    def play(self, choose: Callable[[int, Any], int], learn: Callable[[int, int, float], Any]) -> tuple[float, list[int], float]:
        """Regret, the items shown, and microseconds of processor time per step."""
        began, world, regret, shown = time.process_time(), self.world, 0.0, []
        for user in self.users:
            items = offered(world, user)
            ratings = world.ratings[world.offsets[user] : world.offsets[user] + items.size]
            item = choose(user, items)
            rating = float(ratings[np.flatnonzero(items == item)[0]])
            learn(user, item, rating)
            regret += float(ratings.max()) - rating
            shown.append(item)
        return regret, shown, 1e6 * (time.process_time() - began) / len(self.users)

    def report(self, name: str, agent: Agent, theirs: Any, further: Callable[[int], Any] | None = None) -> None:
        """A line of the table. `further` is what their code must call after a rating."""

        def learn(user: int, item: int, rating: float) -> None:
            theirs.updateParameters(self.pool[item], rating, user)
            if further is not None:
                further(user)

        twin = Agent(agent.policy, N_USERS, self.n_items, seed=0)
        twin.update(0, twin.select(0).item, 1.0)  # compiles or loads
        mine = self.play(lambda user, items: agent.select(user, items).item, agent.update)
        other = self.play(lambda user, items: theirs.decide([self.pool[item] for item in items], user)[0].id, learn)
        same = next((step for step, (one, another) in enumerate(zip(mine[1], other[1], strict=True)) if one != another), len(mine[1]))
        print(f"| {name} | {mine[0]:,.0f} | {other[0]:,.0f} | {same:,} | {mine[2]:,.0f} | {other[2]:,.0f} |", flush=True)


def given(**more: Any) -> dict[str, Any]:
    return {"parameters": dict.fromkeys(("Theta", "CoTheta", "W", "V"), False), "n": N_USERS, **more}


def factor(contest: Contest, algorithm: Any, exploration: float, from_zero: bool) -> None:
    policy = FactorUCB(rank=RANK, ridge=RIDGE, user_exploration=exploration, item_exploration=exploration)
    agent = Agent(policy, N_USERS, contest.n_items, seed=0)
    widths = {"alpha": exploration, "alpha2": exploration, "lambda_": RIDGE, "W": np.eye(N_USERS)}
    theirs = algorithm(given(dimension=0, latent_dimension=RANK, itemNum=contest.n_items, **widths))
    if from_zero:
        agent.state.user_factors[:] = 0.0
    theirs.USERS.UserTheta[:] = agent.state.user_factors.T
    theirs.USERS.CoTheta[:] = agent.state.user_factors.T
    for item, article in enumerate(theirs.articles):
        article.V[:] = agent.state.item_coordinates[:, item]
    contest.report(f"FactorUCB, α = {exploration:g}{', users from zero' if from_zero else ''}", agent, theirs)


def club(contest: Contest, algorithm: Any, exploration: float) -> None:
    features = stream(0, "features").normal(size=(contest.n_items, RANK)) / np.sqrt(RANK)
    for item, article in enumerate(contest.pool):
        article.contextFeatureVector = features[item]
    theirs = algorithm(given(lambda_=1.0, dimension=RANK, alpha=exploration * BASE_TEN, alpha_2=1.0, cluster_init="complete"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "features.npy"
        np.save(file, features)
        agent = Agent(CLUB(features=str(file), exploration=exploration, separation=1.0), N_USERS, contest.n_items, seed=0)
        contest.report(f"CLUB, α = {exploration:g}", agent, theirs, lambda user: theirs.updateGraphClusters(user, "True"))


def main(folder: Path, n_steps: int) -> None:
    their_factor, their_club = load(folder)
    contest = Contest(n_steps)
    print(f"{N_USERS} users and {contest.n_items:,} items of MovieLens 100K, {n_steps:,} steps\n")
    print("| policy | our regret | theirs | same choices at first | our µs a step | theirs |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for from_zero in (False, True):
        for exploration in (0.1, 1.0):
            factor(contest, their_factor, exploration, from_zero)
    club(contest, their_club, 0.5)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
