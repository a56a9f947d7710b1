"""Rankings: the policies of a study ordered by regret, and their mean rank over many data sets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.streams import stream
from albatross.studies.journal import Journal
from albatross.studies.plan import Cell, Study
from albatross.studies.report.document import Block, Grid, Heading
from albatross.studies.report.study import Summary
from albatross.studies.showing import NOTHING, interval_note, show_estimate, show_mean, show_needs, show_number
from albatross.studies.statistics import FEWEST, bootstrap
from albatross.studies.trials import Result


class Finished(NamedTuple):
    """One policy for which all seeds of the study are finished."""

    cell: Cell
    results: list[Result]


def standings(study: Study, journal: Journal, at: Sequence[int] = ()) -> Summary:
    """Per data set, a line per policy, least regret first. Policies that are given more beforehand have their own block."""
    blocks = {}
    for (dataset, told), group in _groups(study, journal).items():
        ordered = sorted(group, key=lambda finished: float(np.mean(_final(finished))))
        name = dataset if told == "nothing" else f"{dataset}, told {told}"
        blocks[name] = [_line(study, finished, number, at) for number, finished in enumerate(ordered, start=1)]
    note = interval_note(len(study.seeds))
    title = f"{study.title}: {len(study.seeds)} seeds, means with 95 % intervals" + (f"\n({note})" if note else "")
    regrets = [f"regret at {step:,}" for step in at]
    return Summary(title, ["policy", "rank", *regrets, "at the end", *(["NDCG"] if study.ndcg else []), "s/trial"], blocks)


def mean_ranks(studies: Sequence[tuple[Study, Journal]]) -> Summary:
    """The mean rank of each policy that is given nothing beforehand, over all data sets on which all such policies are finished.

    Ranks are computed per seed; their interval is a bootstrap over seeds within each data set. With fewer than five seeds there is none.
    """
    ranks: dict[str, list[NDArray[np.float64]]] = {}
    firsts: dict[str, int] = {}
    groups = [group for study, journal in studies for (_, told), group in _groups(study, journal).items() if told == "nothing"]
    everybody = {finished.cell.policy.policy_name() for group in groups for finished in group}
    complete = [group for group in groups if {finished.cell.policy.policy_name() for finished in group} == everybody]
    for group in complete:
        regrets = np.array([_final(finished) for finished in group])
        by_seed = regrets.argsort(axis=0).argsort(axis=0) + 1.0
        for finished, row in zip(group, by_seed, strict=True):
            ranks.setdefault(finished.cell.policy.policy_name(), []).append(row)
        first = group[int(regrets.mean(axis=1).argmin())].cell.policy.policy_name()
        firsts[first] = firsts.get(first, 0) + 1
    rows = []
    for name, strata in sorted(ranks.items(), key=lambda entry: float(np.mean([row.mean() for row in entry[1]]))):
        estimate = bootstrap(lambda rows: float(np.mean([row.mean() for row in rows])), strata, stream(0, "bootstrap"))
        shown = show_estimate(estimate, 1) if len(strata[0]) >= FEWEST else show_number(estimate.mean, 1)
        places = [float(row.mean()) for row in strata]
        rows.append([name, shown, show_number(min(places), 1), show_number(max(places), 1), str(firsts.get(name, NOTHING))])
    title = f"Mean rank among {len(everybody)} policies over {len(complete)} data sets and protocols"
    return Summary(title, ["policy", "mean rank", "best", "worst", "least regret on"], {"all": rows})


def as_blocks(summary: Summary, level: int = 3) -> list[Block]:
    """A summary as part of a document."""
    return [block for title, rows in summary.blocks.items() for block in (Heading(title, level), Grid(summary.headings, rows))]


def _groups(study: Study, journal: Journal) -> dict[tuple[str, str], list[Finished]]:
    """The finished cells, by data set and by what the policy is given beforehand."""
    groups: dict[tuple[str, str], list[Finished]] = {}
    order = list(dict.fromkeys(cell.dataset for cell in study.cells))
    for cell in sorted(study.cells, key=lambda cell: (order.index(cell.dataset), len(cell.policy.needs))):
        results = list(journal.finished(study.trials_of(cell)).values())
        if len(results) == len(study.seeds):
            groups.setdefault((cell.dataset, show_needs(cell.policy)), []).append(Finished(cell, results))
    return groups


def _final(finished: Finished) -> list[float]:
    return [float(result.regret[-1]) for result in finished.results]


def _line(study: Study, finished: Finished, rank: int, at: Sequence[int]) -> list[str]:
    results = finished.results
    early = [show_number(np.mean([result.regret_at(step) for result in results]), 0) for step in at]
    ndcg = [show_mean([result.ndcg[-1] for result in results], 3) if finished.cell.ranked else NOTHING] if study.ndcg else []
    seconds = show_number(np.mean([result.seconds for result in results]), 2)
    return [finished.cell.label, f"{rank}", *early, show_mean(_final(finished)), *ndcg, seconds]
