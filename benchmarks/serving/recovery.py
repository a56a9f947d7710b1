"""The start-up time of a service, with a snapshot and from the log alone: `python -m benchmarks.serving.recovery [RATINGS]`."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import machine

ITEMS = 1_700
MOST_SECONDS = 5.0
LEAST_EVENTS = 100_000

OPEN = """
import json, sys, time
began = time.perf_counter()
from albatross.service.engine.engine import Engine
engine = Engine(sys.argv[1])
imported = time.perf_counter()
engine.wait_ready()
print(json.dumps([imported - began, time.perf_counter() - imported]))
engine.close()
"""
"""Seconds of imports, and until the engine is ready."""


def opened(folder: Path) -> tuple[float, float]:
    told = subprocess.run([sys.executable, "-c", OPEN, str(folder)], check=True, capture_output=True, text=True).stdout
    imports, opening = json.loads(told)
    return imports, opening


def main(n_ratings: int) -> int:
    print(*machine.describe(), f"ALB, rank 5, {ITEMS:,} items, {n_ratings:,} ratings", "", sep="\n")
    print("| users | start with a snapshot | needed | replay without one | events/s | needed |", "| --- " * 6 + "|", sep="\n")
    random = np.random.default_rng(0)
    for n_users in (100_000, 30_000, 10_000):
        scratch = Path(tempfile.mkdtemp(prefix="albatross-recovery-"))
        try:
            columns = (
                random.integers(n_users, size=n_ratings),
                random.integers(ITEMS, size=n_ratings),
                random.integers(1, 6, size=n_ratings),
            )
            rows = "\n".join(f"u{user},i{item},{rating}" for user, item, rating in zip(*columns, strict=True))
            (scratch / "past.csv").write_text(f"user,item,rating\n{rows}\n")
            command = [sys.executable, "-c", "import sys, albatross.cli; sys.exit(albatross.cli.main())", "import"]
            subprocess.run([*command, str(scratch / "shop"), str(scratch / "past.csv"), "--scale=1..5"], check=True, capture_output=True)
            whole = sum(opened(scratch / "shop"))
            shutil.rmtree(scratch / "shop" / "snapshots")
            _, opening = opened(scratch / "shop")
        finally:
            shutil.rmtree(scratch)
        events = (n_ratings + ITEMS) / opening
        print(f"| {n_users:,} | {whole:.1f} s | ≤ {MOST_SECONDS:g} s | {opening:.1f} s | {events:,.0f} | ≥ {LEAST_EVENTS:,} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
