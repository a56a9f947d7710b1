"""`albatross demo`: a minute for a newcomer."""

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from albatross import environments, policies
from albatross.cli.drawing import save_comparison
from albatross.cli.tables import print_comparison
from albatross.cli.terminal import TERMINAL
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.environments.synthetic import Gaussian
from albatross.kernels.building.beside import usable_cores
from albatross.studies.comparison import compare
from albatross.studies.report.comparison import save_json

FOLDER = Path("out") / "demo"
WORLD = Gaussian()
REAL = "movielens-100k"
HORIZON = 25_000
N_SEEDS = 10

BEFORE = f"""\
A synthetic world without ratings: {WORLD.n_users} users, {WORLD.n_items} items.
{HORIZON:,} times a user arrives, is shown one item and rates it.
Four policies choose the item:

  mean-field         our default: learns users, items and when to explore
  alb                the paper's algorithm, with the paper's parameters
  popularity-memory  the most popular item, or what this user liked before
  random             a random item: it learns nothing

Regret is the mean reward of the best item minus the reward of the item shown,
summed over the steps. Less is better. There are {N_SEEDS} worlds, one per seed;
every policy meets the same arrivals and the same noise.
"""

REAL_BEFORE = """
The same on MovieLens 100K. A user is offered the movies they rated.
"""

NEXT = """
Next steps:
  Compare policies on your own ratings (columns user, item, rating):
    {albatross} run --dataset ratings.csv
  Start a recommender service:
    {albatross} serve shop.albatross --scale 1..5
  Check the claims of the paper:
    {albatross} reproduce\
"""


class Part(NamedTuple):
    """Seconds of one comparison."""

    name: str
    preparing: float
    """Compiling, and starting processes."""
    steps: float
    figure: float

    def all(self) -> float:
        return self.preparing + self.steps + self.figure


def demo() -> None:
    """Compare four policies on a world without ratings, and on MovieLens 100K if it is on this machine."""
    print(BEFORE, flush=True)
    parts = [_compare(_contenders({"ridge": 0.01, "noise": 0.5}), WORLD.name, WORLD, "regret")]
    try:
        movies = environments.from_text(REAL, {})
    except InvalidInput:
        print(f"\nMovieLens 100K is left out: it is not on this machine. Download it with\n  albatross data fetch {REAL}", flush=True)
    else:
        print(REAL_BEFORE, flush=True)
        parts.append(_compare(_contenders({"ridge": 1.0, "noise": 0.4}), REAL, movies, REAL))
    _print_times(parts)
    print(NEXT.format(albatross=_command()))


def _command() -> str:
    """What to type: the name of the command, or its place where the shell does not find it by name."""
    if shutil.which("albatross"):
        return "albatross"
    place = Path(sys.executable).with_name("albatross")
    return str(place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place)


def _contenders(tuned: dict[str, float]) -> list[Policy]:
    """ALB with the parameters its authors tuned for the data; the others with their defaults."""
    return [policies.create("mean-field"), policies.create("alb", tuned), policies.create("popularity-memory"), policies.create("random")]


def _compare(contenders: Sequence[Policy], name: str, environment: Environment, file: str) -> Part:
    began = time.monotonic()
    comparison = compare(contenders, name, environment, HORIZON, range(N_SEEDS), observer=TERMINAL)
    compared = time.monotonic()
    steps = sum(result.seconds for results in comparison.results.values() for result in results) / usable_cores()
    print_comparison(comparison)
    FOLDER.mkdir(parents=True, exist_ok=True)
    save_json(comparison, FOLDER / f"{file}.json")
    save_comparison(comparison, FOLDER / f"{file}.png")
    print(f"Figure: {FOLDER / file}.png   Numbers: {FOLDER / file}.json", flush=True)
    return Part(name, compared - began - steps, steps, time.monotonic() - compared)


def _print_times(parts: Sequence[Part]) -> None:
    print(f"\n{'seconds':<16}{'compile, start':>16}{'steps':>8}{'figure':>8}{'all':>8}")
    for part in parts:
        print(f"{part.name:<16}{part.preparing:>16.1f}{part.steps:>8.1f}{part.figure:>8.1f}{part.all():>8.1f}")
    print(f"First figure after {parts[0].all():.0f} s, all after {sum(part.all() for part in parts):.0f} s.")
