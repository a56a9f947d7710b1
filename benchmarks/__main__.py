"""Run benchmarks and print one line each: `python -m benchmarks [NAME …]`, all of them if none is named."""

import sys
from collections.abc import Callable, Iterator

from benchmarks import alb, commands, machine, rivals
from benchmarks.measuring import Line

BENCHMARKS: dict[str, Callable[[], Iterator[Line]]] = {
    "alb-step": alb.step,
    "alb-growth": alb.growth,
    "pts-step": rivals.pts_step,
    "nmf-trial": rivals.nmf_trial,
    "command": commands.command,
    "start-up": commands.start_up,
}

COLUMNS = "| {:<10} | {:<38} | {:<20} | {:<20} | {:>6} | {:<10} | {:<6} |"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}. There is: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    print(
        "CPU time, medians of repetitions in turns; cold starts are measured once. Ratio = one ÷ other.", *machine.describe(), "", sep="\n"
    )
    print(COLUMNS.format("benchmark", "what", "one", "other", "ratio", "target", "met"))
    print(COLUMNS.format(*["---"] * 7))
    lines = []
    for name in names or BENCHMARKS:
        for line in BENCHMARKS[name]():
            verdict = {True: "yes", False: "**no**", None: "–"}[line.met]
            print(COLUMNS.format(name, line.what, str(line.one), str(line.other), f"{line.ratio:.3g}", line.target, verdict), flush=True)
            lines.append(line)
    aims = [line.met for line in lines if line.met is not None]
    print(f"\n{sum(aims)} of {len(aims)} targets met.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
