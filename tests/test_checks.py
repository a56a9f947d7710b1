"""Every registered policy obeys the whole contract."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest

from albatross import checks, policies
from albatross.core.policy import Policy
from albatross.policies.item_mean import ItemMean

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
