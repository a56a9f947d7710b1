"""The finished part of a study in numbers: all policies, and one policy against the best of the others."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from albatross.core.errors import InvalidInput
from albatross.core.streams import stream
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.report.document import Block, Grid, Heading, Paragraph, Picture
from albatross.studies.showing import (
    NOTHING,
    interval_heading,
    interval_note,
    show_estimate,
    show_interval,
    show_mean,
    show_needs,
    show_number,
)
from albatross.studies.statistics import mean_over_seeds, paired_difference
from albatross.studies.trials import Result

Measure = Callable[[Result], float]


class Summary(NamedTuple):
    """A table with a block of rows per data set."""

    title: str
    headings: Sequence[str]
    blocks: dict[str, list[list[str]]]


def summarize(planned: Study, journal: Journal) -> Summary:
    """A line per policy: finished seeds and their results. Policies that are given more beforehand have their own block."""
    protocols = sorted({trial.protocol() for trial in planned.trials()})
    title = f"{planned.title}: {planned.horizon:,} steps {'; '.join(protocols)}{_noted(planned)}"
    headings = ["policy", "seeds", "regret", interval_heading(len(planned.seeds)), *(["NDCG"] if planned.ndcg else []), "s/trial"]
    blocks: dict[str, list[list[str]]] = {}
    order = list(dict.fromkeys(cell.dataset for cell in planned.cells))
    for cell in sorted(planned.cells, key=lambda cell: (order.index(cell.dataset), len(cell.policy.needs))):
        block = f"{cell.dataset}, told {show_needs(cell.policy)}" if cell.policy.needs else cell.dataset
        blocks.setdefault(block, []).append(_line(planned, cell, journal))
    return Summary(title, headings, blocks)


def study_blocks(planned: Study, journal: Journal, picture: Picture) -> list[Block]:
    """The finished part of a study as a document: its curves, and a table per data set."""
    summary = summarize(planned, journal)
    title, *notes = summary.title.splitlines()
    tables = [block for name, rows in summary.blocks.items() for block in (Heading(name), Grid(summary.headings, rows))]
    return [Heading(planned.title, 1), *(Paragraph(text) for text in (f"{title}.", *notes)), picture, *tables]


def compare_policies(planned: Study, journal: Journal, policy: str, at: Sequence[int] = ()) -> Summary:
    """Per data set: the policy, the best of the others, and their difference over the seeds that both have finished.

    Policies that are given more beforehand than this one are left out.
    Regret is compared at these steps, or at the horizon if none are given; rankings if the study measures them.
    """
    for step in at:
        if not 1 <= step <= planned.horizon:
            raise InvalidInput(f"at is {step}; accepted: steps from 1 to the horizon, {planned.horizon:,}")
    blocks: dict[str, list[list[str]]] = {}
    for dataset in dict.fromkeys(cell.dataset for cell in planned.cells):
        present = {cell.label: cell for cell in planned.cells if cell.dataset == dataset}
        told = set(present[policy].policy.needs) if policy in present else set()
        peers = {name: cell for name, cell in present.items() if told.issuperset(cell.policy.needs)}
        everybody = {name: _by_seed(planned, cell, journal) for name, cell in peers.items()}
        ours, others = _split(everybody, policy, dataset)
        blocks[dataset] = [
            [f"regret at {step:,}", *_against(ours, others, partial(Result.regret_at, step=step), min, 0)]
            for step in at or [planned.horizon]
        ]
        if planned.ndcg and all(cell.ranked for cell in peers.values()):
            blocks[dataset].append([f"NDCG@{planned.ndcg.depth}", *_against(ours, others, _final_ndcg, max, 4)])
    title = f"{planned.title}: means over seeds with 95 % intervals, differences paired by seed{_noted(planned)}"
    return Summary(title, ("", policy, "best other", "difference", "which"), blocks)


def _noted(planned: Study) -> str:
    note = interval_note(len(planned.seeds))
    return f"\n({note})" if note else ""


def _line(planned: Study, cell: Cell, journal: Journal) -> list[str]:
    results = list(journal.finished(planned.trials_of(cell)).values())
    begun = [cell.label, f"{len(results)}/{len(planned.seeds)}"]
    if not results:
        return [*begun, *[NOTHING] * (4 if planned.ndcg else 3)]
    regret = mean_over_seeds([result.regret[-1] for result in results], stream(0, "bootstrap"))
    ndcg = [show_number(np.mean([result.ndcg[-1] for result in results]), 4) if cell.ranked else NOTHING] if planned.ndcg else []
    seconds = show_number(np.mean([result.seconds for result in results]), 2)
    return [*begun, show_number(regret.mean), show_interval(regret), *ndcg, seconds]


def _by_seed(planned: Study, cell: Cell, journal: Journal) -> dict[int, Result]:
    return {trial.seed: result for trial, result in journal.finished(planned.trials_of(cell)).items()}


def _split(everybody: dict[str, dict[int, Result]], policy: str, dataset: str) -> tuple[dict[int, Result], dict[str, dict[int, Result]]]:
    if policy not in everybody:
        raise InvalidInput(f"policy is {policy!r}, which is not run on {dataset}; accepted: {', '.join(everybody)}")
    ours = everybody[policy]
    others = {name: results for name, results in everybody.items() if name != policy and results.keys() & ours.keys()}
    if not others:
        raise InvalidInput(f"{dataset}: nothing is finished that could be compared; `albatross study run` does it")
    return ours, others


def _final_ndcg(result: Result) -> float:
    return float(result.ndcg[-1])


def _against(
    ours: dict[int, Result], others: dict[str, dict[int, Result]], measure: Measure, best_of: Callable[..., str], digits: int
) -> list[str]:
    means = {name: np.mean([measure(result) for result in results.values()]) for name, results in others.items()}
    best = best_of(means, key=lambda name: means[name])
    shared = [seed for seed in ours if seed in others[best]]
    mine, theirs = [measure(ours[seed]) for seed in shared], [measure(others[best][seed]) for seed in shared]
    difference = paired_difference(mine, theirs, stream(0, "bootstrap"))
    return [show_mean(mine, digits), show_number(np.mean(theirs), digits), show_estimate(difference, digits), best]
