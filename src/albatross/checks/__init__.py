"""The contract every policy obeys, as functions that raise AssertionError where one does not.

Run them over your own policy with `run(policy)`, or one by one from `CHECKS`.
"""

from collections.abc import Callable

from albatross.checks import beliefs, contract, learning
from albatross.core.policy import Policy

CHECKS: dict[str, Callable[[Policy], None]] = {
    name: check
    for module in (contract, learning, beliefs)
    for name, check in vars(module).items()
    if callable(check) and check.__module__ == module.__name__ and not name.startswith("_") and not isinstance(check, type)
}


def run(policy: Policy) -> None:
    """Hold one policy against every check."""
    for check in CHECKS.values():
        check(policy)
