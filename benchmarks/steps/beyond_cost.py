"""The cost of a step of mean-field against one of ALB, whole trials in turns: `python -m benchmarks.steps.beyond_cost`."""

import numpy as np

from albatross import simulate
from albatross.core.errors import InvalidInput
from albatross.environments import create
from albatross.policies.alb import ALB
from albatross.policies.mean_field import MeanField

TUNED = {
    "gaussian": ALB(ridge=0.01, noise=0.3),
    "uniform": ALB(ridge=1.0, noise=0.1),
    "bernoulli": ALB(ridge=1.0, noise=1.0),
    "movielens-100k": ALB(ridge=1.0, noise=0.1),
    "jester-2": ALB(ridge=1.0, noise=0.1),
    "book-crossing": ALB(ridge=0.001, noise=0.1),
}
HORIZON, TURNS = 25_000, 9


def main() -> None:
    print("| data set | ALB, µs a step | mean-field | ratio |", "| --- " * 4 + "|", sep="\n")
    for name, alb in TUNED.items():
        try:
            environment = create(name)
        except InvalidInput as error:
            print(f"{name}: {error}")
            continue
        rivals = (alb, MeanField())
        seconds = [[simulate(policy, environment, horizon=HORIZON, seed=seed).seconds for policy in rivals] for seed in range(TURNS)]
        theirs, ours = np.median(seconds, axis=0) / HORIZON * 1e6
        print(f"| {name} | {theirs:.1f} | {ours:.1f} | {ours / theirs:.1f} |", flush=True)


if __name__ == "__main__":
    main()
