"""The result of a comparison: a headline, a table, a JSON file."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from albatross.core.files import whole_file
from albatross.core.foreign.outside import digest_of
from albatross.core.streams import stream
from albatross.environments.telling import informed
from albatross.studies.comparison import Comparison
from albatross.studies.showing import interval_heading, interval_note, label, show_interval, show_needs, show_number
from albatross.studies.statistics import mean_over_seeds
from albatross.studies.trials import Result


def headline(comparison: Comparison) -> str:
    """Data set, horizon and seeds."""
    environment, seeds = comparison.environment, comparison.seeds
    numbers = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]}–{seeds[-1]}"
    sizes = f"{environment.n_users:,} users, {environment.n_items:,} items"
    note = interval_note(len(seeds))
    if comparison.shards > 1:
        sizes += f" on {comparison.shards} shards"
    return f"{comparison.dataset}: {sizes}; {comparison.horizon:,} steps {comparison.protocol}, {numbers}" + (f"\n({note})" if note else "")


def headings(comparison: Comparison) -> tuple[str, ...]:
    return ("policy", "regret", interval_heading(len(comparison.seeds)), "pseudo-regret", "µs/step")


def comparison_blocks(comparison: Comparison) -> dict[str, list[list[str]]]:
    """One line per policy with its main results. Policies that are given more beforehand have a block of their own."""
    blocks: dict[str, list[list[str]]] = {}
    for policy, results in sorted(comparison.results.items(), key=lambda entry: len(entry[0].needs)):
        regret = mean_over_seeds([result.regret[-1] for result in results], stream(0, "bootstrap"))
        pseudo_regret = np.mean([result.pseudo_regret[-1] for result in results])
        microseconds = 1e6 * np.mean([result.seconds for result in results]) / comparison.horizon
        row = [label(policy), show_number(regret.mean), show_interval(regret), show_number(pseudo_regret), show_number(microseconds, 1)]
        blocks.setdefault(show_needs(policy), []).append(row)
    return blocks


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Everything as plain values, for other programs."""
    return {
        "dataset": comparison.dataset,
        "dataset_parameters": comparison.environment.parameters(),
        "protocol": comparison.protocol,
        "horizon": comparison.horizon,
        **({} if comparison.shards == 1 else {"shards": comparison.shards, "exchange": comparison.exchange}),
        "policies": [
            {
                "name": policy.policy_name(),
                "parameters": informed(policy, comparison.environment).parameters(),
                "told": list(policy.needs),
                "source": digest_of(type(policy)),
                "runs": [_run(seed, result) for seed, result in zip(comparison.seeds, results, strict=True)],
            }
            for policy, results in comparison.results.items()
        ],
    }


def as_text(comparison: Comparison) -> str:
    return json.dumps(as_json(comparison))


def save_json(comparison: Comparison, path: Path) -> None:
    text = as_text(comparison)
    with whole_file(path) as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def _run(seed: int, result: Result) -> dict[str, Any]:
    return {
        "seed": seed,
        "checkpoints": result.checkpoints.tolist(),
        "regret": result.regret.tolist(),
        "pseudo_regret": result.pseudo_regret.tolist(),
        "seconds": result.seconds,
    }
