"""A simulated public: arrivals, candidates, reactions, and the truth that only metrics may see."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.operations import Items

GAUSSIAN, UNIFORM, BERNOULLI, LOGGED, LOGISTIC, STARS, SHOPPING = range(7)
"""How a user reacts to an item. GAUSSIAN, UNIFORM: the mean plus noise. BERNOULLI: a coin with that mean. LOGGED: the rating in the log.
LOGISTIC: a coin whose mean is the logistic function of ⟨user, item⟩. STARS: ⟨user, item⟩ rounded up or down at random to one of five
stars, so that the mean is kept. SHOPPING: if the user reacts at all, a click by a logistic coin, and after a click perhaps a purchase."""


class World(NamedTuple):
    """One public, as compiled code sees it. Means are ⟨user, item⟩ or, for logged ratings, a table.

    Made by `environments.world.new_world`.
    """

    user_factors: NDArray[np.float64]
    item_factors: NDArray[np.float64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    """User u may be shown the `lengths[u]` items from `items[offsets[u]]` on. Without offsets: the whole catalogue."""
    items: Items
    ratings: NDArray[np.float64]
    """Parallel to `items`, if the ratings are logged."""
    offers: NDArray[np.int64]
    """If candidates in `items` change with every arrival: per item the number of its last offer, and at the end the number of offers.
    Otherwise empty."""
    best: NDArray[np.float64]
    """Per user the mean of the best item they may be shown; NaN until it is computed."""
    ideal: NDArray[np.float64]
    """Per user the discounted gain of the best ranking; NaN until it is computed."""
    reaction: int
    spread: float
    """Standard deviation of Gaussian noise, or full width of uniform noise."""
    shift: float
    """Added to a mean to make it a relevance, which is never negative; NaN if means have no lower bound."""
    repeats: bool
    """Whether a user may be shown an item again."""
    crowd: NDArray[np.float64]
    """Cumulative arrival probabilities of the users; empty if all are equal."""
    walk: float
    """Standard deviation of the step of a user's vector between two visits, per coordinate ..."""
    stay: float
    """... and the factor of its old position, so that its length stays the same on average."""
    pace: int
    """If a window moves through the catalogue: arrivals between two of its steps; otherwise 0."""
    delay: int
    """A rating is learned after so many further ratings."""
    day: int
    """Arrivals per day, if days differ; otherwise 0."""
    stock: int
    """If a window moves through the catalogue: each item is sold out one day in so many; 0: never."""
    returning: float
    """If days differ: the probability that an arriving user has been there before."""
    silent: float
    """In a shop: the probability that a user does not react, whatever is shown."""
    buying: float
    """In a shop: the probability that a click is followed by a purchase."""


class OtherRatings(NamedTuple):
    """Ratings of other users, from before the first arrival. Their user numbers are not those of the arriving users."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    ratings: NDArray[np.float64]


class Truth(NamedTuple):
    """What a policy is given beforehand: only what it declares in `needs`."""

    means: NDArray[np.float64] = np.empty((0, 0))
    """Mean reward of every pair; minus infinity if unknown. Empty for a policy that does not need it."""
    item_factors: NDArray[np.float64] | None = None
    """The true item vectors, if there are any."""
    ratings: OtherRatings | None = None
    """Ratings of other users, for a policy that needs them."""


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
