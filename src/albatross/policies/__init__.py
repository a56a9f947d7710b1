"""One file per algorithm; the file name is the registration. No policy imports another."""

import importlib
import pkgutil
from typing import Any

from albatross.core.errors import unknown
from albatross.core.policy import Policy


def names() -> list[str]:
    """The registered policies: `alb_rs.py` is called `alb-rs`."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def find(name: str) -> type[Policy]:
    """The policy class of that name.

    >>> find("alb").__name__
    'ALB'
    """
    if name not in names():
        raise unknown("policy", name, names())
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    classes = (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Policy))
    (found,) = (value for value in classes if value.__module__ == module.__name__)
    return found


def create(name: str, parameters: dict[str, Any] | None = None) -> Policy:
    """A policy from its name and parameters, as a study file has them."""
    policy = find(name)
    known = policy.__dataclass_fields__
    for parameter in parameters or {}:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known)
    return policy(**(parameters or {}))
