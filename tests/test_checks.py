"""Every registered policy obeys the whole contract."""

from collections.abc import Callable

import pytest

from albatross import checks, policies
from albatross.core.policy import Policy

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
