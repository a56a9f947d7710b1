"""The contract of every policy, as functions that raise AssertionError if a policy breaks it.

Run them over your own policy with `run(policy)` or `albatross check thompson.py:Thompson`, or one by one from `CHECKS`.
"""

import traceback
from collections.abc import Callable, Iterator
from typing import Any

from albatross.checks import beliefs, contract, joining, learning, plain, replacing, shards
from albatross.core.errors import InvalidInput
from albatross.core.foreign.plain import Plain, Player
from albatross.core.policy import Policy
from albatross.policies import resolve

CHECKS: dict[str, Callable[[Policy], None]] = {
    name: check
    for module in (contract, learning, beliefs, replacing, joining, shards)
    for name, check in vars(module).items()
    if callable(check) and check.__module__ == module.__name__ and not name.startswith("_") and not isinstance(check, type)
}


def checks_of(policy: Policy) -> dict[str, Callable[[Any], None]]:
    """The checks for this policy; for one in plain Python there are fewer."""
    return plain.CHECKS if isinstance(policy, Plain) else CHECKS


def run(policy: Policy | type[Policy] | Callable[..., Player] | str) -> None:
    """Run every check on one policy: an instance, its class, or a reference such as thompson.py:Thompson."""
    given = resolve(policy)
    for check in checks_of(given).values():
        check(given)


def verdicts(policy: Policy) -> Iterator[tuple[str, str | None]]:
    """Each check by name, with what is wrong, or None. Code that cannot be compiled is reported once, as an `InvalidInput`."""
    for name, check in checks_of(policy).items():
        complaint = None
        try:
            check(policy)
        except AssertionError as error:
            complaint = str(error) or f"failed: {(check.__doc__ or '').strip()}"
        except InvalidInput:
            raise
        except Exception as error:  # a user's policy may raise anything
            frame = traceback.extract_tb(error.__traceback__)[-1]
            complaint = f"{frame.filename}, line {frame.lineno}: {type(error).__name__}: {error}"
        yield name, complaint
