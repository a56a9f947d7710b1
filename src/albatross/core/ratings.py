"""Ratings as a table: who rated what, and how high."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.core.vocabulary import Vocabulary

Scale = tuple[float, float]


class Summary(NamedTuple):
    """The size of a table in five numbers."""

    users: int
    items: int
    ratings: int
    density: float
    """The share of all pairs of a user and an item that has a rating."""
    scale: Scale | None


class RatingTable(NamedTuple):
    """One rating per pair of user and item, both as dense numbers. Items without ratings may be included."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    ratings: NDArray[np.float64]
    user_names: Vocabulary
    item_names: Vocabulary
    source: str
    """Where the ratings come from: the name of a data set, or of a file."""
    scale: Scale | None = None
    """The lowest and the highest possible rating, if known."""

    def describe(self) -> Summary:
        users, items = len(self.user_names), len(self.item_names)
        return Summary(users, items, self.ratings.size, self.ratings.size / max(users * items, 1), self.scale)


def tabulated(
    user_ids: NDArray[Any],
    item_ids: NDArray[Any],
    ratings: NDArray[np.float64],
    *,
    scale: Scale | None,
    source: str,
    catalogue: NDArray[Any] | None = None,
) -> RatingTable:
    """A table from outside ids, numbered in sorted order, so that the order of the rows does not matter.

    The catalogue, if given, names all items, in increasing order; otherwise the items are those with a rating.
    If a pair has several ratings, the last one counts.

    >>> import numpy as np
    >>> table = tabulated(np.array([7, 3, 7]), np.array([20, 10, 10]), np.array([1.0, 5.0, 2.0]), scale=(1, 5), source="example")
    >>> table.users.tolist(), table.items.tolist(), table.user_names.name(0), table.describe().density
    ([1, 0, 1], [1, 0, 0], '3', 0.75)
    """
    known_users, users = np.unique(user_ids, return_inverse=True)
    known_items, items = np.unique(item_ids, return_inverse=True)
    if catalogue is not None:
        strangers = np.setdiff1d(known_items, catalogue)
        if strangers.size:
            raise InvalidInput(f"{source}: item {strangers[0]} is rated, but is not one of the {catalogue.size} items there are")
        known_items, items = catalogue, np.searchsorted(catalogue, known_items)[items]
    _, last = np.unique((users * known_items.size + items)[::-1], return_index=True)
    kept = np.sort(users.size - 1 - last)
    return RatingTable(
        users=users[kept].astype(np.int32),
        items=items[kept].astype(np.int32),
        ratings=ratings[kept],
        user_names=Vocabulary(map(str, known_users.tolist())),
        item_names=Vocabulary(map(str, known_items.tolist())),
        source=source,
        scale=scale,
    )


def restricted(table: RatingTable, users: NDArray[Any] | None = None, items: NDArray[Any] | None = None) -> RatingTable:
    """Only these users and items, numbered in the given order. Rows keep their order."""
    new_users, user_names = _renumbered(table.user_names, users)
    new_items, item_names = _renumbered(table.item_names, items)
    kept = (new_users[table.users] >= 0) & (new_items[table.items] >= 0)
    return table._replace(
        users=new_users[table.users[kept]],
        items=new_items[table.items[kept]],
        ratings=table.ratings[kept],
        user_names=user_names,
        item_names=item_names,
    )


def active_users(table: RatingTable, min_ratings: int, n_users: int | None) -> NDArray[np.int64]:
    """The users with at least so many ratings, in order. Refuses if there are fewer than requested."""
    counts = np.bincount(table.users, minlength=len(table.user_names))
    active = np.flatnonzero(counts >= min_ratings)
    if n_users is not None and active.size < n_users:
        raise InvalidInput(
            f"{table.source}: n_users is {n_users}, but {active.size} users have at least {min_ratings} ratings; "
            f"accepted: at most {active.size}, or none for all of them"
        )
    return active


def _renumbered(names: Vocabulary, kept: NDArray[Any] | None) -> tuple[NDArray[np.int32], Vocabulary]:
    """From each old number to its new one, or -1 if it is removed."""
    if kept is None:
        return np.arange(len(names), dtype=np.int32), names
    numbers = np.full(len(names), -1, np.int32)
    numbers[kept] = np.arange(kept.size)
    return numbers, Vocabulary(names.name(number) for number in kept.tolist())
