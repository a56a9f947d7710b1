"""Run benchmarks and print a line for each ratio: `python -m benchmarks [--all] [NAME …]`; if none is named, what takes a few minutes."""

import sys
from collections.abc import Callable, Iterator

from benchmarks import commands, machine, page
from benchmarks.cluster import shards
from benchmarks.measuring import Line
from benchmarks.steps import alb, every_policy, grid, mean_field, mean_field_profile, rivals, scale, search, ten_million, trials

BENCHMARKS: dict[str, Callable[[], Iterator[Line]]] = {
    "trial": trials.targets,
    "scoring": grid.scoring,
    "search": search.search,
    "alb-step": alb.step,
    "alb-part": grid.step,
    "alb-growth": alb.growth,
    "ratings": scale.repeats,
    "history": scale.history,
    "popularity": scale.popularity,
    "users": scale.users,
    "memory": scale.memory,
    "default-step": mean_field.steps,
    "default-scoring": mean_field.scoring,
    "default-search": mean_field.search,
    "n-best": mean_field.rankings,
    "learning": mean_field.learning,
    "single": mean_field.single,
    "in-service": mean_field.in_service,
    "pts-step": rivals.pts_step,
    "shards": shards.exchange,
    "nmf-trial": rivals.nmf_trial,
    "command": commands.command,
    "start-up": commands.start_up,
    "cold": commands.cold,
}

LONGER: dict[str, Callable[[], Iterator[Line]]] = {
    **BENCHMARKS,
    "scoring": grid.whole_scoring,
    "alb-part": grid.whole_step,
    "alb-largest": grid.largest_step,
    "search": search.whole_search,
    "million": search.million,
    "policies": every_policy.steps,
    "ten-million-tenth": ten_million.tenth,
    "ten-million": ten_million.whole,
    "profile": trials.profiles,
    "mean-field-profile": mean_field_profile.profile,
    "page-map": page.page_map,
    "page-million": page.page_million,
}
"""The same, with more cases."""

COLUMNS = "| {:<10} | {:<38} | {:<22} | {:<25} | {:>6} | {:<10} | {:<6} |"


def main(names: list[str]) -> int:
    benchmarks = LONGER if "--all" in names else BENCHMARKS
    chosen = [name for name in names if name != "--all"] or list(benchmarks)
    unknown = [name for name in chosen if name not in LONGER]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}. There is: {', '.join(LONGER)}; or --all", file=sys.stderr)
        return 2
    print("Ratio = one ÷ other, both measured in turns in one run.", *machine.describe(), "", sep="\n")
    print(COLUMNS.format("benchmark", "what", "one", "other", "ratio", "target", "met"))
    print(COLUMNS.format(*["---"] * 7))
    lines = []
    for name in chosen:
        for line in (benchmarks.get(name) or LONGER[name])():
            verdict = {True: "yes", False: "**no**", None: "–"}[line.met]
            print(COLUMNS.format(name, line.what, str(line.one), str(line.other), f"{line.ratio:.3g}", line.target, verdict), flush=True)
            lines.append(line)
    aims = [line.met for line in lines if line.met is not None]
    print(f"\n{sum(aims)} of {len(aims)} targets met.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
