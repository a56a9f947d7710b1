"""Shared by all benchmarks: how time is measured, and a line of the table."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self


@dataclass(frozen=True)
class Quantity:
    """Something that was measured: seconds, or bytes."""

    name: str
    amount: float
    unit: Literal["s", "B"] = "s"

    def __str__(self) -> str:
        if self.unit == "B":
            return f"{self.name} {self.amount:,.4g} B"
        for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
            if self.amount * factor >= 1.0 or unit == "µs":
                break
        return f"{self.name} {self.amount * factor:.3g} {unit}"


@dataclass(frozen=True)
class Line:
    """Two quantities of one run, and their target."""

    what: str
    one: Quantity
    other: Quantity
    target: str = "–"
    met: bool | None = None
    """None without a target."""

    @classmethod
    def at_most(cls, what: str, one: Quantity, other: Quantity, most: float) -> Self:
        """A line whose ratio should not exceed a number."""
        return cls(what, one, other, f"≤ {most:g}", one.amount <= most * other.amount)

    @property
    def ratio(self) -> float:
        return self.one.amount / self.other.amount


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor time, not wall time: other processes may use the machine too."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def medians_in_turns(one: Callable[[int], float], other: Callable[[int], float], repetitions: int) -> tuple[float, float]:
    """The medians of two measurements, taken in turns so that both see the same machine. Each is given the number of the repetition."""
    pairs = [(one(repetition), other(repetition)) for repetition in range(repetitions)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)
