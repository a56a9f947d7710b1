"""Queues, simulated: processes compute on shared processors, wait, and use places that have room for few at a time.

A process is a generator. It yields what it does next: `Compute`, `Pause`, `Seize`, `Free`, or a list of processes to begin, all of which
must end before it goes on. Processors are shared equally: with more processes than processors, each computes more slowly.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Generator
from typing import NamedTuple


class Place:
    """Who seizes a full one waits, in the order of arrival."""

    def __init__(self, room: int = 1) -> None:
        self.room = room
        self.waiting: deque[_Running] = deque()


class Compute(NamedTuple):
    seconds: float


class Pause(NamedTuple):
    seconds: float


class Seize(NamedTuple):
    place: Place


class Free(NamedTuple):
    place: Place


Process = Generator["Compute | Pause | Seize | Free | list[Process]", None, None]


class _Running:
    def __init__(self, process: Process, parent: "_Running | None") -> None:
        self.process, self.parent = process, parent
        self.children = 0
        self.left = 0.0
        """Seconds still to compute."""


class Simulation:
    def __init__(self, processors: float) -> None:
        self.now = 0.0
        self.computed = 0.0
        """Processor time of all processes so far."""
        self._processors = processors
        self._computing: list[_Running] = []
        self._pausing: list[tuple[float, int, _Running]] = []
        self._order = itertools.count()

    def begin(self, process: Process) -> None:
        self._go_on(_Running(process, None))

    def run(self, until: float) -> None:
        """Let time pass."""
        while self.now < until and (self._computing or self._pausing):
            speed = min(1.0, self._processors / len(self._computing)) if self._computing else 1.0
            step = min((one.left for one in self._computing), default=float("inf")) / speed
            if self._pausing:
                step = min(step, self._pausing[0][0] - self.now)
            self.now += step
            self.computed += step * speed * len(self._computing)
            for one in self._computing:
                one.left -= step * speed
            ended = [one for one in self._computing if one.left <= 1e-12]
            self._computing = [one for one in self._computing if one.left > 1e-12]
            while self._pausing and self._pausing[0][0] <= self.now + 1e-12:
                ended.append(heapq.heappop(self._pausing)[2])
            for one in ended:
                self._go_on(one)

    def _go_on(self, running: _Running) -> None:
        """Let a process do what it does next, as far as it takes no time."""
        for act in running.process:
            if isinstance(act, Compute):
                running.left = act.seconds
                self._computing.append(running)
                return
            if isinstance(act, Pause):
                heapq.heappush(self._pausing, (self.now + act.seconds, next(self._order), running))
                return
            if isinstance(act, Seize):
                if act.place.room == 0:
                    act.place.waiting.append(running)
                    return
                act.place.room -= 1
            elif isinstance(act, Free):
                if act.place.waiting:
                    self._go_on(act.place.waiting.popleft())
                else:
                    act.place.room += 1
            elif act:
                running.children = len(act)
                for child in act:
                    self._go_on(_Running(child, running))
                return
        if (parent := running.parent) is not None:
            parent.children -= 1
            if parent.children == 0:
                self._go_on(parent)
