"""Worlds beyond the paper's: drifting users, a changing catalogue, skewed arrivals, late ratings, stars, rare clicks."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from albatross.core.environment import LOGISTIC, STARS
from albatross.core.errors import InvalidInput
from albatross.core.parameters import parameter
from albatross.environments.synthetic import Gaussian, Synthetic
from albatross.environments.world import NO_OFFSETS


@dataclass(frozen=True)
class Drift(Gaussian):
    """The Gaussian world with drift: a user's vector moves a little between two visits."""

    step: float = parameter(0.1, "how far it moves, as a part of its length", above=0, below=1)

    def _further(self) -> dict[str, Any]:
        return {"walk": self.step * self.user_scale, "stay": math.sqrt(1.0 - self.step**2)}


@dataclass(frozen=True)
class Turnover(Gaussian):
    """The Gaussian world with a changing catalogue: the candidates are a window that moves on, so items come and go."""

    n_items: int = parameter(2000, "number of items (m)", at_least=1)
    candidates: int | None = parameter(200, "how many items can be shown at one time", at_least=1)
    pace: int = parameter(14, "arrivals between two changes: one item leaves, one comes", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates is None or self.fresh or not self.repeats:
            given = f"candidates is {self.candidates}, fresh is {self.fresh} and repeats is {self.repeats}"
            raise InvalidInput(f"Turnover: {given}; accepted: a number of candidates, not fresh, and repeats")

    def _offered(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return NO_OFFSETS, np.zeros(self.candidates or 0, np.int32)

    def _further(self) -> dict[str, Any]:
        return {"pace": self.pace}


@dataclass(frozen=True)
class Skewed(Gaussian):
    """The Gaussian world with a large catalogue and skewed arrivals: few users come often, most come rarely (Zipf's law)."""

    n_items: int = parameter(5000, "number of items (m)", at_least=1)
    exponent: float = parameter(1.0, "user number r arrives in proportion to r to the power of minus this", at_least=0)

    def _further(self) -> dict[str, Any]:
        return {"crowd": np.cumsum(np.arange(1.0, self.n_users + 1) ** -self.exponent)}


@dataclass(frozen=True)
class Late(Gaussian):
    """The Gaussian world with delay: a rating arrives after a number of later steps, and until then counts as pending."""

    delay: int = parameter(500, "number of steps", at_least=0)

    def _further(self) -> dict[str, Any]:
        return {"delay": self.delay}


@dataclass(frozen=True)
class Stars(Synthetic):
    """One to five stars: 3 + user offset + ⟨user vector, item vector⟩, rounded up or down at random so that the mean is kept."""

    bias: float = parameter(0.5, "standard deviation of the user offsets", at_least=0)
    signal: float = parameter(1.0, "standard deviation of ⟨user vector, item vector⟩", above=0)

    reaction: ClassVar[int] = STARS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clicks:
            raise InvalidInput("Stars: clicks is True; accepted: False")

    def _factors(self, random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        users = random.standard_normal((self.n_users, self.rank))
        items = random.normal(0.0, self.signal / math.sqrt(self.rank), (self.n_items, self.rank))
        biases = random.normal(3.0, self.bias, (self.n_users, 1))
        return np.hstack([users, biases]), np.hstack([items, np.ones((self.n_items, 1))])


@dataclass(frozen=True)
class RareClicks(Synthetic):
    """Rare clicks: their probability is the logistic function of level + user offset + item offset + ⟨user vector, item vector⟩."""

    n_users: int = parameter(1000, "number of users (n)", at_least=1)
    n_items: int = parameter(500, "number of items (m)", at_least=1)
    clicks: bool = parameter(True, "always true: a rating is 1 or 0")
    level: float = parameter(-3.5, "base level before offsets and vectors: −3.5 is 3 clicks in 100")
    offsets: float = parameter(0.5, "standard deviation of the offsets of users, and of items", at_least=0)
    signal: float = parameter(1.0, "standard deviation of ⟨user vector, item vector⟩", above=0)

    reaction: ClassVar[int] = LOGISTIC
    clicking: ClassVar[int] = LOGISTIC

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.clicks:
            raise InvalidInput("RareClicks: clicks is False; accepted: True")

    @property
    def name(self) -> str:
        return "rare-clicks"

    def _factors(self, random: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        users = random.standard_normal((self.n_users, self.rank))
        items = random.normal(0.0, self.signal / math.sqrt(self.rank), (self.n_items, self.rank))
        of_users = random.normal(self.level, self.offsets, (self.n_users, 1))
        of_items = random.normal(0.0, self.offsets, (self.n_items, 1))
        return np.hstack([users, of_users, np.ones_like(of_users)]), np.hstack([items, np.ones_like(of_items), of_items])


FURTHER: dict[str, type[Synthetic]] = {
    "drift": Drift, "turnover": Turnover, "skewed": Skewed, "late": Late, "stars": Stars, "rare-clicks": RareClicks,
}  # fmt: skip
