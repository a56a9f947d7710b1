"""Short trials of every policy in every protocol, and what was recorded of them.

Published numbers come from the same code. If one of these changes, they may have changed too: then either the change is a fault, or
`make golden` records what is now true, and the commit says why.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from albatross import simulate
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.core.ratings import RatingTable, tabulated
from albatross.environments.ratings import Ratings
from albatross.environments.synthetic import Bernoulli, Gaussian, Uniform
from albatross.metrics.ndcg import NDCG

from zoo import POLICIES

RECORDINGS = Path(__file__).with_name("recordings.json")
SEED = 1


def some_ratings() -> RatingTable:
    """A few hundred ratings in whole stars: two of three pairs are rated."""
    users, items = np.divmod(np.arange(15 * 20), 20)
    rated = (users + 2 * items) % 3 > 0
    stars = 1.0 + (users * items + users // 2 + items) % 5
    return tabulated(users[rated], items[rated], stars[rated], scale=(1, 5), source="stars")


GAUSSIAN = Gaussian(n_users=15, n_items=20, rank=3)
PROTOCOLS: dict[str, tuple[Environment, int, NDCG | None]] = {
    "bernoulli, without repeats": (Bernoulli(n_users=15, n_items=20, rank=3, repeats=False), 150, None),
    "gaussian": (GAUSSIAN, 400, None),
    "gaussian, 7 candidates": (replace(GAUSSIAN, candidates=7), 200, None),
    "gaussian, 7 candidates drawn anew": (replace(GAUSSIAN, candidates=7, fresh=True), 200, None),
    "ratings": (Ratings(some_ratings()), 300, NDCG()),
    "ratings, without repeats": (Ratings(some_ratings(), repeats=False), 150, NDCG(depth=3, gain="exponential")),
    "uniform": (Uniform(n_users=15, n_items=20, rank=3), 200, NDCG()),
}
"""Where, how many steps, and how rankings are measured."""


def record(policy: Policy, protocol: str) -> dict[str, Any]:
    """What a trial comes to: sums over its steps, and the name of what was learned."""
    environment, horizon, ndcg = PROTOCOLS[protocol]
    try:
        lived = simulate(policy, environment, horizon, SEED, ndcg)
    except InvalidInput as error:
        return {"refused": str(error)}
    sums = {"regret": float(lived.regret.sum()), "pseudo_regret": float(lived.pseudo_regret.sum())}
    rankings = {} if ndcg is None else {"ndcg": float(lived.ndcg.sum())}
    return {**sums, **rankings, "state_id": lived.state_id}


def recorded() -> dict[str, dict[str, Any]]:
    """The file, by policy and protocol."""
    content: dict[str, dict[str, Any]] = json.loads(RECORDINGS.read_text(encoding="utf-8"))
    return content


def case_name(policy: str, protocol: str) -> str:
    return f"{policy} | {protocol}"


def write() -> None:
    """Record every case again, one line each, in their order."""
    found = {case_name(name, protocol): record(policy, protocol) for name, policy in POLICIES.items() for protocol in PROTOCOLS}
    lines = (f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    RECORDINGS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
