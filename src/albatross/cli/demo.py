"""`albatross demo`: two minutes for a newcomer."""

from pathlib import Path

from albatross import policies
from albatross.cli.drawing import save_comparison
from albatross.cli.reproduce import reproduce
from albatross.cli.tables import print_comparison
from albatross.cli.terminal import TERMINAL
from albatross.environments.synthetic import Gaussian
from albatross.studies.comparison import compare
from albatross.studies.report.comparison import save_json

FOLDER = Path("out") / "demo"
WORLD = Gaussian()
HORIZON = 25_000
N_SEEDS = 10

BEFORE = f"""\
A world nobody has rated yet: {WORLD.n_users} users, {WORLD.n_items} items, and nothing known of either.
{HORIZON:,} times a user arrives, is shown one item and rates it.
There are three ways to choose the item:

  alb     learns tastes and items from the ratings alone, after each of them
  random  shows anything: what not learning costs
  oracle  knows every taste: nobody can do better

Regret is how much more the best item would have pleased, summed over the steps.
{N_SEEDS} such worlds, one per seed; all three meet the same users in the same order.
"""

BETWEEN = """
Now the paper that proposed ALB: what it claims of ALB and its rivals, PTS and
NMF-Bandit, on three synthetic data sets, and what we find. Takes a minute.
"""


def demo() -> None:
    """Show on a world nobody has rated yet how ALB learns, and what becomes of the paper's claims on synthetic data."""
    print(BEFORE, flush=True)
    contenders = [policies.create("alb", {"ridge": 0.01, "noise": 0.5}), policies.create("random"), policies.create("oracle")]
    comparison = compare(contenders, WORLD.name, WORLD, HORIZON, range(N_SEEDS), observer=TERMINAL)
    print_comparison(comparison)
    FOLDER.mkdir(parents=True, exist_ok=True)
    save_json(comparison, FOLDER / "regret.json")
    save_comparison(comparison, FOLDER / "regret.png")
    alb, random = (sum(result.pseudo_regret[-1] for result in comparison.results[policy]) for policy in contenders[:2])
    print(f"The regret of ALB is {alb / random:.0%} of that of showing anything, the luck of noisy")
    print("ratings left out: that is pseudo-regret.")
    print(f"Figure: {FOLDER / 'regret.png'}   Numbers: {FOLDER / 'regret.json'}")
    print(BETWEEN, flush=True)
    reproduce(synthetic=True, folder=FOLDER / "paper", horizon=HORIZON, seeds=N_SEEDS)
    print("Next: albatross list; albatross run --policy alb --dataset ratings.csv")
