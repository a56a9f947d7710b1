"""Small worlds with an obvious answer."""

from dataclasses import dataclass

import numpy as np

from albatross.core.environment import GAUSSIAN, World
from albatross.core.parameters import Recipe, parameter
from albatross.kernels.operations import ALL_ITEMS


@dataclass(frozen=True)
class Checkerboard(Recipe):
    """Even users give even items 5 and odd items 1, odd users the other way round. No noise."""

    n_users: int = parameter(20, "number of users", at_least=2)
    n_items: int = parameter(12, "number of items", at_least=2)
    scale: float = parameter(1.0, "what every rating is multiplied with")

    @property
    def name(self) -> str:
        return "checkerboard"

    def world(self, seed: int) -> World:
        users = np.eye(2)[np.arange(self.n_users) % 2]
        items = np.array([[5.0, 1.0], [1.0, 5.0]])[np.arange(self.n_items) % 2]
        return _noiseless(users, items * self.scale)


@dataclass(frozen=True)
class Favourite(Recipe):
    """Everybody gives the last two items 5 and all others 1. No noise."""

    n_users: int = parameter(20, "number of users", at_least=1)
    n_items: int = parameter(12, "number of items", at_least=3)

    @property
    def name(self) -> str:
        return "favourite"

    def world(self, seed: int) -> World:
        items = np.where(np.arange(self.n_items) < self.n_items - 2, 1.0, 5.0)
        return _noiseless(np.ones((self.n_users, 1)), items[:, np.newaxis])


def _noiseless(users: np.ndarray[tuple[int, ...], np.dtype[np.float64]], items: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> World:
    return World(users, items, np.empty(0, np.int64), ALL_ITEMS, np.empty(0), np.full(len(users), np.nan), GAUSSIAN, 0.0)
