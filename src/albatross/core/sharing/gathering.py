"""Payloads of one shard, put together as one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.policy import Division
from albatross.core.sharing.exchange import Payload, hollow
from albatross.core.sharing.steps import merge_figures, report_figures
from albatross.kernels.compiling import program
from albatross.kernels.operations import merge, offers, report


class Gathering:
    """Merges payloads of one shard into one: folding it gives the same knowledge of the shard as folding all of them."""

    def __init__(self, agent: Agent) -> None:
        """`agent`: of the same policy, without ratings."""
        self._agent = agent
        population = (agent.policy.division or Division()).population
        self._blank, self._total = hollow(agent.state, population), hollow(agent.state, population)
        self._digests = np.empty(0, np.uint64)
        self._touched = np.empty(0, np.bool_)
        self._sums: tuple[NDArray[Any], ...] | None = None
        self._figures = np.empty(0)

    def add(self, payload: Payload) -> None:
        if self._sums is None:
            self._sums = tuple(np.empty((0, *array.shape[1:]), array.dtype) for array in payload.sums)
        room = int(payload.items[-1]) + 1 if payload.items.size else 0
        if room > len(self._touched):
            room = max(room, 2 * len(self._touched))
            self._digests, self._touched = lengthened(self._digests, room), lengthened(self._touched, room)
            self._sums = tuple(lengthened(array, room) for array in self._sums)
        self._touched[payload.items] = True
        fitted = payload.digests > 0
        self._digests[payload.items[fitted]] = payload.digests[fitted]
        for total, added in zip(self._sums, payload.sums, strict=True):
            total[payload.items] += added
        if offers(self._total, merge):
            program(merge_figures, type(self._agent.state))(self._total, payload.figures)
        self._figures = np.zeros(payload.figures.size)

    def payload(self) -> Payload:
        items = np.flatnonzero(self._touched).astype(np.int32)
        if offers(self._total, report):  # everything in it came from reports, so it also stands for the others
            program(report_figures, type(self._agent.state))(self._total, self._total, self._blank, self._figures)
        return Payload(items, self._digests[items], self._figures, tuple(array[items] for array in self._sums or ()))


def lengthened(array: NDArray[Any], room: int) -> NDArray[Any]:
    """The same array with more rows, all zero."""
    return np.concatenate([array, np.zeros((room - len(array), *array.shape[1:]), array.dtype)])
