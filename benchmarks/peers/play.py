"""One player on MovieLens 100K: `python -m benchmarks.peers.play NAME SECONDS STEPS` prints the result as JSON."""

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross import environments
from albatross.core.streams import stream
from albatross.environments.world import arrivals, offered
from benchmarks.peers.players import PLAYERS

N_COORDINATES = 5


def hindsight(n_users: int, n_items: int, world: Any) -> NDArray[np.float64]:
    """Per user 1 and five coordinates from a singular value decomposition of all ratings minus their mean."""
    table = np.zeros((n_users, n_items))
    table[np.repeat(np.arange(n_users), world.lengths), world.items] = world.ratings - world.ratings.mean()
    left, _, _ = np.linalg.svd(table, full_matrices=False)
    coordinates = left[:, :N_COORDINATES] * np.sqrt(n_users)  # each of mean square 1
    return np.hstack([np.ones((n_users, 1)), coordinates])


def play(name: str, seconds: float, horizon: int) -> dict[str, Any]:
    """Decide and learn until the horizon, or until the processor time is spent."""
    environment = environments.create("movielens-100k")
    n_users, n_items = environment.n_users, environment.n_items
    world = environment.world(0)
    users = arrivals(world, stream(0, "arrivals"), horizon).tolist()
    player = PLAYERS[name](n_users, n_items, hindsight(n_users, n_items, world))
    choices = [offered(world, user) for user in range(n_users)]
    answers = np.split(world.ratings, world.offsets[1:])
    ratings = [dict(zip(items.tolist(), given.tolist(), strict=True)) for items, given in zip(choices, answers, strict=True)]
    deciding, learning, regret, spent = [], [], [], 0.0
    for user in users:
        began = time.process_time()
        player.decide(user)
        decided = time.process_time()
        item = player.among(user, choices[user])
        shown = time.process_time()
        player.learn(user, item, choices[user], ratings[user][item])
        learned = time.process_time()
        deciding.append(decided - began)
        learning.append(learned - shown)
        regret.append(max(ratings[user].values()) - ratings[user][item])
        spent += learned - began
        if spent > seconds:
            break
    return {"decide": float(np.median(deciding)), "learn": float(np.median(learning)), "regret": np.cumsum(regret).tolist()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of the libraries, which would hide the answer
    print(json.dumps(play(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))))
