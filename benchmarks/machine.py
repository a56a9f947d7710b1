"""Where and when something was measured."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def describe() -> list[str]:
    """What a reader needs to know before comparing numbers with those of another machine."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "albatross-bandits"))
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    return [
        f"Machine: {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        f"Software: Python {platform.python_version()}, {packages}",
        f"Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; load of the machine over 1, 5 and 15 minutes: {load}",
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown processor"
