"""Logged ratings as a world: a user's candidates are the items they rated, and the reward is that rating."""

import hashlib
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import LOGGED, OtherRatings, World
from albatross.core.errors import InvalidInput
from albatross.core.parameters import Recipe, parameter
from albatross.core.ratings import RatingTable
from albatross.core.streams import stream
from albatross.datasets.tabular import read_table
from albatross.environments.world import new_world

GOOD = 0.7
"""From this fraction of the scale on, a rating is good: 4 of 5 stars, 8 of 10, 4 on a scale from −10 to 10."""


class Ratings:
    """The candidates of a user are the items they rated; the reward is the logged rating, without noise.

    With `clicks`, the reward is 1 for a good rating and 0 otherwise.

    All seeds have the same ratings, but different arrivals. With a `split`, half of the users, or half of each user's ratings, are held
    back, the same at every seed. They are never a reward; policies that need other users' ratings get them beforehand.

    >>> from albatross.core.vocabulary import Vocabulary
    >>> people, films = Vocabulary(["ann", "bob"]), Vocabulary(["heat", "alien"])
    >>> table = RatingTable(np.array([0, 0, 1]), np.array([1, 0, 1]), np.array([5.0, 2.0, 3.0]), people, films, "films.csv")
    >>> world = Ratings(table).world(seed=0)
    >>> world.items.tolist(), world.ratings.tolist(), world.lengths.tolist()
    ([0, 1, 1], [2.0, 5.0, 3.0], [2, 1])
    """

    def __init__(self, table: RatingTable, repeats: bool = True, split: str = "none", clicks: bool = False) -> None:
        order = np.lexsort((table.items, table.users))
        self.name = table.source
        self.n_users, self.n_items = len(table.user_names), len(table.item_names)
        self.repeats, self.split, self.clicks = repeats, split, clicks
        floor = float(table.ratings.min(initial=0.0)) if table.scale is None else table.scale[0]
        self.shift = 0.0 if clicks else max(0.0, -floor)
        self._offsets = np.searchsorted(table.users[order], np.arange(self.n_users + 1)).astype(np.int64)
        self._items = table.items[order].astype(np.int32)
        self._ratings = table.ratings[order].astype(np.float64)
        if clicks:
            lowest, highest = table.scale or (float(self._ratings.min()), float(self._ratings.max()))
            self._ratings = (self._ratings >= lowest + GOOD * (highest - lowest)).astype(np.float64)
        idle = np.flatnonzero(np.diff(self._offsets) == 0)
        if idle.size:
            raise InvalidInput(f"{self.name}: user {table.user_names.name(idle[0])!r} has no rating; accepted: at least one per user")
        self._told: OtherRatings | None = None
        self._names: tuple[Sequence[str], Sequence[str]] | None = table.user_names.names, table.item_names.names
        if split != "none":
            self._keep_apart(half_of_users(self._offsets) if split == "users" else half_of_ratings(self._offsets))
        digest = hashlib.blake2b(digest_size=16)
        for array in (self._offsets, self._items, self._ratings):
            digest.update(array.tobytes())
        self._digest = digest.hexdigest()

    def parameters(self) -> dict[str, Any]:
        """The identity of this world. The digest identifies the ratings themselves, independent of the name of the file."""
        sizes = {"n_users": self.n_users, "n_items": self.n_items, "n_ratings": self._items.size}
        told = {} if self._told is None else {"split": self.split, "n_told": self._told.ratings.size}
        return {**sizes, "repeats": self.repeats, "clicks": self.clicks, "shift": self.shift, "digest": self._digest, **told}

    def world(self, seed: int) -> World:
        return new_world(
            self.n_users,
            reaction=LOGGED,
            # Arrays sent to another process arrive as a subclass, for which compiled code would be compiled again.
            offsets=np.asarray(self._offsets),
            items=np.asarray(self._items),
            ratings=np.asarray(self._ratings),
            shift=self.shift,
            repeats=self.repeats,
        )

    def ratings_of_others(self, seed: int) -> OtherRatings | None:
        return self._told

    def user_name(self, user: int) -> str:
        return str(user) if self._names is None else self._names[0][user]

    def item_name(self, item: int) -> str:
        return str(item) if self._names is None else self._names[1][item]

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to another process: all but the names, which may be large and are not needed there."""
        return {**self.__dict__, "_names": None}

    def _keep_apart(self, apart: NDArray[np.bool_]) -> None:
        """Remove these ratings, and the users who have no others."""
        users = np.repeat(np.arange(self.n_users), np.diff(self._offsets))
        _, others = np.unique(users[apart], return_inverse=True)
        self._told = OtherRatings(others.astype(np.int32), self._items[apart], self._ratings[apart])
        present, counts = np.unique(users[~apart], return_counts=True)
        self.n_users = present.size
        self._names = self._names and ([self._names[0][user] for user in present], self._names[1])
        self._offsets = np.concatenate([[0], np.cumsum(counts)])
        self._items, self._ratings = self._items[~apart], self._ratings[~apart]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ratings) and (self.name, self.parameters()) == (other.name, other.parameters())

    def __hash__(self) -> int:
        return hash((self.name, self._digest))


def half_of_users(offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Marks every rating by half of the users, rounded down."""
    n_users = offsets.size - 1
    chosen = np.zeros(n_users, np.bool_)
    chosen[stream(0, "split").permutation(n_users)[: n_users // 2]] = True
    return np.repeat(chosen, np.diff(offsets))


def half_of_ratings(offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Marks half of each user's ratings, rounded down."""
    random = stream(0, "split")
    chosen = np.zeros(offsets[-1], np.bool_)
    for start, stop in itertools.pairwise(offsets):
        chosen[start + random.permutation(stop - start)[: (stop - start) // 2]] = True
    return chosen


@dataclass(frozen=True)
class Protocol(Recipe):
    """How logged ratings are used."""

    repeats: bool = parameter(True, "whether a user may be shown an item again")
    split: str = parameter(
        "none", "hold back half of these, for policies that need ratings beforehand", choices=("none", "users", "ratings")
    )
    clicks: bool = parameter(False, "whether a good rating becomes 1 and any other 0")


@dataclass(frozen=True)
class RatingsFile(Recipe):
    """Your own ratings, one per row: a user's candidates are the items they rated, and the reward is that rating."""

    user_column: str = parameter("user", "the column that names the user")
    item_column: str = parameter("item", "the column that names the item")
    rating_column: str = parameter("rating", "the column that holds the rating")

    def load(self, path: str | os.PathLike[str]) -> RatingTable:
        return read_table(path, self.user_column, self.item_column, self.rating_column)
