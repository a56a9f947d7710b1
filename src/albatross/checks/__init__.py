"""The contract every policy obeys, as functions that raise AssertionError where one does not.

Run them over your own policy with `run(policy)`, or one by one from `CHECKS`.
"""

from collections.abc import Callable
from typing import Any

from albatross.checks import beliefs, contract, learning, plain
from albatross.core.plain import Plain, Player, as_policy
from albatross.core.policy import Policy

CHECKS: dict[str, Callable[[Policy], None]] = {
    name: check
    for module in (contract, learning, beliefs)
    for name, check in vars(module).items()
    if callable(check) and check.__module__ == module.__name__ and not name.startswith("_") and not isinstance(check, type)
}


def checks_of(policy: Policy) -> dict[str, Callable[[Any], None]]:
    """What can be asked of this policy: of one in plain Python, less."""
    return plain.CHECKS if isinstance(policy, Plain) else CHECKS


def run(policy: Policy | type[Policy] | Callable[..., Player]) -> None:
    """Hold one policy against every check of its kind."""
    recipe = as_policy(policy)
    for check in checks_of(recipe).values():
        check(recipe)
