"""One request of many in one body: an error in it does not affect the others."""

from collections.abc import Callable
from typing import Any, TypeVar

from albatross.service.api.answers import Answer, Refusal
from albatross.service.api.errors import Refused
from albatross.service.api.requests import Request
from albatross.service.engine.group import Group

R = TypeVar("R", bound=Request[Any])
A = TypeVar("A", bound=Answer)


def attempt(group: Group, handle: Callable[[Group, R], Callable[[], A]], request: R) -> Callable[[], A | Refusal]:
    """Handle one of many requests: its answer, or its refusal."""
    try:
        return handle(group, request)
    except Refused as refusal:
        told = Refusal(refusal.status, refusal.code, str(refusal))
    except Exception as error:  # a bug, which must not affect the others
        told = Refusal(500, "failed", f"the service failed to look at this one ({type(error).__name__})")
    return lambda: told
