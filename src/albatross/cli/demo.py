"""`albatross demo`: a minute for a newcomer."""

import time
from collections.abc import Sequence
from pathlib import Path

from albatross import environments, policies
from albatross.cli.drawing import save_comparison
from albatross.cli.tables import print_comparison
from albatross.cli.terminal import TERMINAL
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.environments.synthetic import Gaussian
from albatross.studies.comparison import compare
from albatross.studies.report.comparison import save_json

FOLDER = Path("out") / "demo"
WORLD = Gaussian()
REAL = "movielens-100k"
HORIZON = 25_000
N_SEEDS = 10

BEFORE = f"""\
A world nobody has rated yet: {WORLD.n_users} users, {WORLD.n_items} items, and nothing known of either.
{HORIZON:,} times a user arrives, is shown one item and rates it.
There are four ways to choose the item:

  mean-field         learns tastes and items, and what it is worth to try one
  alb                the paper's algorithm, with the paper's parameters
  popularity-memory  what people like, and what this user liked before
  random             anything: what not learning costs

Regret is how much more the best item would have pleased, summed over the steps.
{N_SEEDS} such worlds, one per seed; the same arrivals and noise for every policy.
"""

REAL_BEFORE = """
The same on MovieLens 100K. A user is offered the films they rated.
"""

NEXT = """
Next:
  albatross watch --dataset gaussian             the same on a page, live
  albatross serve shop.albatross --scale 1..5    a recommender of your own
  albatross run --dataset ratings.csv            policies on your own ratings
  albatross reproduce                            the paper's claims, checked\
"""


def demo() -> None:
    """Compare four policies on a world without ratings, and on MovieLens 100K if it is on this machine."""
    print(BEFORE, flush=True)
    began = time.monotonic()
    _compare(_contenders({"ridge": 0.01, "noise": 0.5}), WORLD.name, WORLD, "regret")
    first = time.monotonic()
    try:
        movies = environments.from_text(REAL, {})
    except InvalidInput:
        print(f"\nMovieLens 100K is left out: it is not here. Get it with\n  albatross data fetch {REAL}", flush=True)
    else:
        print(REAL_BEFORE, flush=True)
        _compare(_contenders({"ridge": 1.0, "noise": 0.4}), REAL, movies, REAL)
    print(f"\nFirst figure after {first - began:.0f} s, all after {time.monotonic() - began:.0f} s.")
    print(NEXT)


def _contenders(tuned: dict[str, float]) -> list[Policy]:
    """ALB with the parameters its authors tuned for the data; the others with their defaults."""
    return [policies.create("mean-field"), policies.create("alb", tuned), policies.create("popularity-memory"), policies.create("random")]


def _compare(contenders: Sequence[Policy], name: str, environment: Environment, file: str) -> None:
    comparison = compare(contenders, name, environment, HORIZON, range(N_SEEDS), observer=TERMINAL)
    print_comparison(comparison)
    FOLDER.mkdir(parents=True, exist_ok=True)
    save_json(comparison, FOLDER / f"{file}.json")
    save_comparison(comparison, FOLDER / f"{file}.png")
    print(f"Figure: {FOLDER / file}.png   Numbers: {FOLDER / file}.json", flush=True)
