"""A simulated public: who arrives, what they may be shown, how they react, and the truth that only metrics may see."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.operations import Items

GAUSSIAN, UNIFORM, BERNOULLI, LOGGED, LOGISTIC, STARS, SHOPPING = range(7)
"""How a user reacts to an item: the mean plus noise, a coin with that mean, the rating in the log, a coin with the logistic function of
⟨user, item⟩ as its mean, ⟨user, item⟩ rounded to one of five stars, up or down so that the mean is kept, or a click by such a coin, if the
user reacts at all, and after a click perhaps a purchase."""


class World(NamedTuple):
    """One public, as compiled code sees it: means are ⟨user, item⟩, or, for logged ratings, a table.

    Made by `environments.world.new_world`.
    """

    user_factors: NDArray[np.float64]
    item_factors: NDArray[np.float64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    """User u may be shown the `lengths[u]` items from `items[offsets[u]]` on; no offsets at all: the whole catalogue."""
    items: Items
    ratings: NDArray[np.float64]
    """Beside `items`, where the ratings are logged."""
    offers: NDArray[np.int64]
    """Where candidates change with every arrival, in `items`: per item the number of the last offer it was part of, and at the end
    how many offers there were. Otherwise empty."""
    best: NDArray[np.float64]
    """Per user the mean of the best item they may be shown, once it has been asked for; not a number before."""
    ideal: NDArray[np.float64]
    """Per user the discounted gain of the best ranking, likewise."""
    reaction: int
    spread: float
    """Standard deviation of Gaussian noise, or full width of uniform noise."""
    shift: float
    """What is added to a mean to make it a relevance, which is never negative; not a number where means have no floor."""
    repeats: bool
    """Whether a user may be shown an item again."""
    crowd: NDArray[np.float64]
    """Per user the chance that it is this one or one before who arrives; empty where all have the same."""
    walk: float
    """How far a user's vector moves between two visits, in each coordinate (standard deviation), ..."""
    stay: float
    """... and what is left of where it was: then its length stays the same on average."""
    pace: int
    """Where a window moves through the catalogue: arrivals between two of its steps; otherwise 0."""
    delay: int
    """So many ratings are given before one is heard of."""
    day: int
    """Arrivals a day, where days differ; otherwise 0."""
    stock: int
    """Where a window moves through the catalogue: each item is sold out one day in so many; 0: never."""
    returning: float
    """Where days differ: the chance that somebody has been there before."""
    silent: float
    """In a shop: the chance that a user does not react, whatever they are shown."""
    buying: float
    """In a shop: the chance that a click is followed by a purchase."""


class OtherRatings(NamedTuple):
    """Ratings of other users, from before the first arrival. Their user numbers are not those of the users who arrive."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    ratings: NDArray[np.float64]


class Truth(NamedTuple):
    """What a policy is told beforehand: only what it declares in `needs`."""

    means: NDArray[np.float64] = np.empty((0, 0))
    """Mean reward of every pair; minus infinity where it is not known. Empty for who is not told."""
    item_factors: NDArray[np.float64] | None = None
    """The true item vectors, where there are any."""
    ratings: OtherRatings | None = None
    """What others said, for who is told that."""


class Environment(Protocol):
    """A recipe for publics: one per seed."""

    @property
    def name(self) -> str: ...
    @property
    def n_users(self) -> int: ...
    @property
    def n_items(self) -> int: ...
    def parameters(self) -> dict[str, Any]: ...
    def world(self, seed: int) -> World: ...


@runtime_checkable
class Telling(Protocol):
    """An environment that has ratings of other users for policies that need them."""

    def ratings_of_others(self, seed: int) -> OtherRatings | None:
        """Ratings that are never a reward; None if no ratings are held back."""


@runtime_checkable
class Named(Protocol):
    """An environment whose users and items have names outside."""

    def user_name(self, user: int) -> str: ...
    def item_name(self, item: int) -> str: ...
