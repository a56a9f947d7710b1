"""Every registered policy obeys the whole contract."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from albatross import checks, policies
from albatross.core.environment import Truth
from albatross.core.policy import Nothing, Policy
from albatross.core.streams import Streams
from albatross.kernels.operations import Items, Slate, implements, select, update
from albatross.policies.item_mean import ItemMean
from albatross.policies.random import Random

from zoo import POLICIES


def test_the_zoo_has_one_example_of_every_policy() -> None:
    assert sorted(POLICIES) == policies.names()
    for name, policy in POLICIES.items():
        assert policy.policy_name() == name


EXAMPLES = [pytest.param(policy, id=name, marks=pytest.mark.xdist_group(name)) for name, policy in POLICIES.items()]


@pytest.mark.parametrize("policy", EXAMPLES)
@pytest.mark.parametrize("check", [pytest.param(check, id=name) for name, check in checks.CHECKS.items()])
def test_check(check: Callable[[Policy], None], policy: Policy) -> None:
    check(policy)


@dataclass(frozen=True)
class Forgetful(ItemMean):
    """Learns what everybody likes, and does not say so."""

    learns: ClassVar[Literal["users", "crowd", "nothing"]] = "users"


def test_a_policy_that_forgets_what_it_learns_is_told_so() -> None:
    with pytest.raises(AssertionError, match='not what one user likes: then the class declares `learns = "crowd"`'):
        checks.CHECKS["beats_random"](Forgetful())


@dataclass(frozen=True)
class Hopeful(Random):
    """Claims to learn, and does not."""

    learns: ClassVar[Literal["users", "crowd", "nothing"]] = "users"


@dataclass(frozen=True)
class Nosy(Policy):
    """Counts who asks."""

    def init(self, n_users: int, n_items: int, streams: Streams, truth: Truth | None) -> "Asked":
        return Asked(np.zeros(n_users, np.int64))


class Asked(NamedTuple):
    questions: NDArray[np.int64]


@implements(select, Asked)
def choose_first(
    state: Asked, settings: Nothing, scratch: Nothing, user: int, candidates: Items, slate: Slate, random: np.random.Generator
) -> tuple[int, float]:
    state.questions[user] += 1
    return 0, 1.0


@implements(update, Asked)
def learn_nothing(
    state: Asked, settings: Nothing, scratch: Nothing, user: int, item: int, reward: float, random: np.random.Generator
) -> None:
    pass


@pytest.mark.parametrize(
    ("policy", "check", "complaint"),
    [(Hopeful(), "beats_random", "showing anything"), (Nosy(), "select_changes_nothing", "select changed the state")],
)
def test_a_policy_that_breaks_the_contract_is_caught(policy: Policy, check: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        checks.CHECKS[check](policy)
