"""The three synthetic worlds of the paper: new vectors per seed, and a distribution of rewards."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import BERNOULLI, GAUSSIAN, LOGISTIC, UNIFORM, OtherRatings, World
from albatross.core.errors import InvalidInput
from albatross.core.memory import require_memory
from albatross.core.parameters import Recipe, parameter
from albatross.core.streams import stream
from albatross.environments.world import NO_OFFSETS, new_world, ratings_by
from albatross.kernels.operations import ALL_ITEMS


@dataclass(frozen=True)
class Synthetic(Recipe):
    """Mean rewards are ⟨user vector, item vector⟩; every seed draws its own vectors."""

    n_users: int = parameter(200, "number of users (n)", at_least=1)
    n_items: int = parameter(200, "number of items (m)", at_least=1)
    rank: int = parameter(5, "length of the true vectors (k)", at_least=1)
    candidates: int | None = parameter(None, "how many random items each user may be shown; none: all", at_least=1)
    fresh: bool = parameter(False, "whether these are drawn anew whenever a user arrives")
    repeats: bool = parameter(True, "whether a user may be shown an item again")
    clicks: bool = parameter(False, "whether a rating is 1 or 0, with the mean as the probability of 1")

    reaction: ClassVar[int]
    clicking: ClassVar[int] = BERNOULLI
    """The reaction if ratings are clicks."""
    shift: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates is not None and self.candidates > self.n_items:
            raise InvalidInput(f"{type(self).__name__}: candidates is {self.candidates}; accepted: at most n_items, {self.n_items}")
        if self.fresh and (self.candidates is None or not self.repeats):
            given = f"candidates is {self.candidates} and repeats is {self.repeats}"
            raise InvalidInput(f"{type(self).__name__}: fresh is True while {given}; accepted: a number of candidates, and repeats")

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    def world(self, seed: int) -> World:
        sizes = f"{self.n_users:,} users and {self.n_items:,} items"
        require_memory(self._footprint(), f"a world with {sizes}")
        users, items = self._factors(stream(seed, "true factors"))
        offsets, offered = self._offered(seed)
        return new_world(
            self.n_users,
            reaction=self.clicking if self.clicks else self.reaction,
            user_factors=users,
            item_factors=items,
            offsets=offsets,
            items=offered,
            fresh=self.fresh,
            spread=self._spread(),
            shift=0.0 if self.clicks else self.shift,
            repeats=self.repeats,
            **self._further(),
        )

    def ratings_of_others(self, seed: int) -> OtherRatings:
        """Ratings of the same items by as many other users, with their own vectors."""
        strangers, _ = self._factors(stream(seed, "other users"))
        return ratings_by(strangers, self.world(seed), stream(seed, "ratings of others"))

    def _further(self) -> dict[str, Any]:
        """Further arguments for `new_world`."""
        return {}

    def _offered(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The candidates, as `new_world` expects them: where each user's items begin, and the items."""
        if self.candidates is None:
            return NO_OFFSETS, ALL_ITEMS
        if self.fresh:
            return NO_OFFSETS, np.zeros(self.candidates, np.int32)
        random = stream(seed, "candidates")
        rows = [np.sort(random.choice(self.n_items, self.candidates, replace=False)) for _ in range(self.n_users)]
        return np.arange(self.n_users + 1) * self.candidates, np.concatenate(rows).astype(np.int32)

    def _footprint(self) -> int:
        """Bytes: vectors, values per user, and the candidates of each user, which are copied once."""
        vectors = 8 * self.rank * (self.n_users + self.n_items)
        offered = 0 if self.fresh or (self.candidates is None and self.repeats) else self.candidates or self.n_items
        return vectors + self.n_users * (4 * 8 + 2 * 8 * offered)

    def _factors(self, random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Users on the simplex, items in the unit cube: means lie between 0 and 1."""
        users = random.standard_exponential((self.n_users, self.rank))
        return users / users.sum(axis=1, keepdims=True), random.random((self.n_items, self.rank))

    def _spread(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Gaussian(Synthetic):
    """Normal user and item vectors, normal noise; as clicks, with the logistic function of the mean as their probability."""

    noise: float = parameter(0.5, "standard deviation of the noise (σ)", at_least=0)
    user_scale: float = parameter(1.0, "standard deviation of the true user vectors (σ₁)", above=0)
    item_scale: float = parameter(1.0, "standard deviation of the true item vectors (σ₂)", above=0)

    reaction: ClassVar[int] = GAUSSIAN
    clicking: ClassVar[int] = LOGISTIC
    shift: ClassVar[float] = math.nan

    def _factors(self, random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        users = random.normal(0.0, self.user_scale, (self.n_users, self.rank))
        return users, random.normal(0.0, self.item_scale, (self.n_items, self.rank))

    def _spread(self) -> float:
        return self.noise


@dataclass(frozen=True)
class Uniform(Synthetic):
    """Users on the simplex, items in the unit cube, uniform noise around the mean."""

    width: float = parameter(0.5, "full width of the noise (w)", at_least=0)

    reaction: ClassVar[int] = UNIFORM

    def _spread(self) -> float:
        return self.width


@dataclass(frozen=True)
class Bernoulli(Synthetic):
    """Users on the simplex, items in the unit cube; the rating is 1 with probability equal to the mean, else 0."""

    reaction: ClassVar[int] = BERNOULLI


WORLDS: dict[str, type[Synthetic]] = {"gaussian": Gaussian, "uniform": Uniform, "bernoulli": Bernoulli}
