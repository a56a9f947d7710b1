"""One request of many in one body: whatever is wrong with it, the others have nothing to do with it."""

from collections.abc import Callable
from typing import Any, TypeVar

from albatross.service.api.answers import Answer, Refusal
from albatross.service.api.errors import Refused
from albatross.service.api.requests import Request
from albatross.service.engine.group import Group

R = TypeVar("R", bound=Request[Any])
A = TypeVar("A", bound=Answer)


def attempt(group: Group, handle: Callable[[Group, R], Callable[[], A]], request: R) -> Callable[[], A | Refusal]:
    """What becomes of one of many."""
    try:
        return handle(group, request)
    except Refused as refusal:
        told = Refusal(refusal.status, refusal.code, str(refusal))
    except Exception as error:  # a mistake of ours, which must not take the others with it
        told = Refusal(500, "failed", f"the service failed to look at this one ({type(error).__name__})")
    return lambda: told
