"""Compare with other libraries, each in its own process: `python -m benchmarks.peers [FOLDER [SECONDS]]`.

FOLDER gets a virtual environment of its own, if it has none yet, with albatross as it stands here and the versions of `requirements.txt`.
SECONDS of processor time are what each player may spend on steps. Needs Python, a package index and, for contextualbandits, a C compiler.
"""

import json
import os
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.players import PLAYERS

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
HORIZON = 25_000
COLUMNS = "| {:<25} | {:>9} | {:>6} | {:>13} | {:>11} | {:>9} | {:>6} | {:>9} |"


def install(folder: Path) -> dict[str, str]:
    """Errors by requirement. Each is installed separately."""
    python = str(_python(folder))
    if not Path(python).exists():
        venv.create(folder, with_pip=True)
    pinned = [line for line in (HERE / "requirements.txt").read_text().splitlines() if line and not line.startswith("#")]
    constraints = str(ROOT / "constraints.txt")
    failures = {}
    for requirement in (str(ROOT), *pinned):
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints, requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            failures[requirement.partition("==")[0]] = _last_line(done.stderr)
    return failures


def play(folder: Path, name: str, seconds: float) -> dict[str, Any] | str:
    """The result, or why there is none."""
    one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "MKL", "OMP")}
    surroundings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | one_thread
    command = [str(_python(folder)), "-m", "benchmarks.peers.play", name, str(seconds), str(HORIZON)]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return _last_line(done.stderr)
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _last_line(messages: str) -> str:
    return (messages.strip().splitlines() or ["no message"])[-1]


def _version(folder: Path, package: str) -> str:
    command = [str(_python(folder)), "-c", f"from importlib.metadata import version; print(version({package!r}))"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout.strip() or "–"


def main(folder: Path, seconds: float) -> int:
    failures = install(folder)
    if find_spec("numba") is not None:
        from benchmarks import machine

        print(*machine.describe(), "", sep="\n")
    print(COLUMNS.format("player", "version", "steps", "µs to decide", "µs to learn", "÷ first", "regret", "first's"))
    print(COLUMNS.format(*["---"] * 8))
    own: dict[str, Any] = {}
    for name, player in PLAYERS.items():
        outcome = failures.get(player.requirement) or play(folder, name, seconds)
        if isinstance(outcome, str):
            print(f"| {name:<25} | does not run: {outcome}", flush=True)
            continue
        own = own or outcome
        steps, taken = len(outcome["regret"]), outcome["decide"] + outcome["learn"]
        ratio = taken / (own["decide"] + own["learn"])
        numbers = (f"{1e6 * outcome['decide']:,.0f}", f"{1e6 * outcome['learn']:,.0f}", f"{ratio:,.0f}")
        regrets = (f"{outcome['regret'][-1]:,.0f}", f"{own['regret'][steps - 1]:,.0f}")
        print(COLUMNS.format(name, _version(folder, player.requirement), f"{steps:,}", *numbers, *regrets), flush=True)
    print()
    for name, player in PLAYERS.items():
        print(f"- {name}: {player.remark}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".venv-peers").absolute(), float(sys.argv[2]) if len(sys.argv) > 2 else 60.0))
