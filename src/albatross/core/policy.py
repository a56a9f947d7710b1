"""A policy: a recipe for learning. Frozen hyperparameters, and functions over a state; it holds no state itself."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal, NamedTuple, Self

from albatross.core.environment import Truth
from albatross.core.foreign.outside import Parcel, name_of, pack, unpack
from albatross.core.parameters import Recipe
from albatross.core.streams import Streams
from albatross.kernels.building.sources import is_ours


class Nothing(NamedTuple):
    """Settings or scratch of a policy that needs none. (Compiled code does not accept a tuple without fields.)"""

    nothing: int = 0


class Need(StrEnum):
    """What a policy may be given beforehand."""

    FEATURES = "item features"
    GRAPH = "a graph"
    CLASSES = "the number of classes"
    RATINGS = "other users' ratings"
    TRUTH = "the truth"


FROM_THE_WORLD = (Need.RATINGS, Need.TRUTH)
"""What only a simulated world can give; the others are parameters of the policy."""


class Division(NamedTuple):
    """How the arrays of a state divide if users live on several shards. Each array, by its dotted name, is in one of these groups."""

    own: tuple[str, ...] = ()
    """Rows of users, constants, and counts of this shard alone: they stay on the shard."""
    sums: tuple[str, ...] = ()
    """One row per item, a sum over users: own part plus the others."""
    derived: tuple[str, ...] = ()
    """What is computed from the sums. The first has one row per item, which changes when the item is refitted."""
    population: tuple[str, ...] = ()
    """Figures of all users together."""
    by_turns: tuple[tuple[str, Any], ...] = ()
    """Parameters that switch off what a shard does in turn among its own users. Then shards that exchange after each rating learn what
    one agent learns, up to rounding."""
    rows: tuple[str, ...] = ()
    """Of `own`: tables of pairs, and arrays with a row per user. They go with a user who moves to another shard."""


@dataclass(frozen=True)
class Policy(Recipe, ABC):
    """Derive from this in a file of `albatross.policies`; the file name is the policy's name.

    Beside the class, the file declares what `select` and `update` do on its states, with `@implements`.
    """

    needs: ClassVar[tuple[Need, ...]] = ()
    """What the policy is given beforehand; a property if its parameters decide. Policies that are given more are compared separately."""
    learns: ClassVar[Literal["users", "crowd", "nothing"]] = "users"
    """What the policy can distinguish: the tastes of users, only items that everybody likes, or nothing."""

    counters: ClassVar[tuple[str, ...]] = ()
    """Names of arrays of length 1 in the state that are worth reporting with a trial."""

    division: ClassVar[Division | None] = None
    """How the state divides over shards; None: the policy runs on one shard."""

    statistics: ClassVar[tuple[str, ...]] = ()
    """Names of arrays in the state, or fields of its records, that are counts or sums over ratings alone, besides `Pairs` and `Tally`."""

    def settings(self) -> tuple[Any, ...]:
        """The hyperparameters as a NamedTuple of numbers, for compiled code."""
        return Nothing()

    @abstractmethod
    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> tuple[Any, ...]:
        """A state without ratings: a NamedTuple of arrays. `truth` has what the policy needs of the world.

        A larger state begins with the same random numbers as a smaller one, so that a model can grow.
        """

    def scratch(self, n_users: int, n_items: int) -> tuple[Any, ...]:
        """Working arrays as a NamedTuple. Not learned and not saved: their initial contents do not matter."""
        return Nothing()

    def knowing(self, returns: bool) -> Self:
        """The recipe for a place that knows whether rated items are offered again. Most policies do not care, and stay as they are."""
        return self

    def asks(self) -> tuple[Need, ...]:
        """What it needs to know of the world. A policy that needs nothing can be served."""
        return tuple(need for need in self.needs if need in FROM_THE_WORLD)

    @classmethod
    def policy_name(cls) -> str:
        """The name of its file; for a policy from outside, its reference."""
        return cls.__module__.rpartition(".")[2].replace("_", "-") if is_ours(cls) else name_of(cls)

    def __reduce__(self) -> Any:
        """What is sent to another process; for a policy from outside also its sources, which may be missing there."""
        return _received, (type(self) if is_ours(type(self)) else pack(type(self)), self.parameters())

    @classmethod
    def summary(cls) -> str:
        """The first sentence of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    @classmethod
    def reference(cls) -> str:
        """What the docstring says after `Reference:`."""
        paragraph = (cls.__doc__ or "").partition("Reference:")[2].partition("\n\n")[0]
        return " ".join(paragraph.split())


def _received(recipe: type[Policy] | Parcel, parameters: dict[str, Any]) -> Any:
    return (recipe if isinstance(recipe, type) else unpack(recipe))(**parameters)
