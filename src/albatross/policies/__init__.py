"""One file per algorithm; the file name is the registration. No policy imports another.

A policy from outside is referred to by its file (`thompson.py:Thompson`), by its module (`package.module:Thompson`), or by the name
under which an installed package offers it (an entry point of the group `albatross.policies`).
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from albatross.core.errors import InvalidInput, unknown
from albatross.core.foreign.outside import digest_of, entry_points, is_registered, load_file, load_module
from albatross.core.foreign.plain import Player, recipe
from albatross.core.policy import Policy

DEFAULT = "mean-field"
"""The policy if none is given."""


def names() -> list[str]:
    """The registered policies: `alb_rs.py` is called `alb-rs`."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def find(name: str, beside: Path | None = None) -> type[Policy]:
    """The policy class of that name, or of a file or another package. Relative paths start at `beside`, or at the current folder.

    >>> find("alb").__name__
    'ALB'
    """
    if not isinstance(name, str):
        raise InvalidInput(f"policy is {name!r}; accepted: a name, file.py:Class or module:Class")
    if is_registered(name):
        module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
        (found,) = _policies_in(module).values()
        return found
    where, colon, class_name = name.rpartition(":") if not name.endswith(".py") else (name, "", "")
    if where.endswith(".py"):
        given = Path(where)
        return _chosen(load_file((beside or Path()) / given.expanduser(), given.as_posix()), class_name, given.as_posix())
    if colon:
        return _chosen(load_module(where), class_name, where)
    return _offered(name)


def create(name: str, parameters: dict[str, Any] | None = None, beside: Path | None = None) -> Policy:
    """A policy from its name and parameters, as in a study file."""
    policy = find(name, beside)
    known = policy.__dataclass_fields__
    for parameter in parameters or {}:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known)
    return policy(**(parameters or {}))


def resolve(policy: Policy | type[Policy] | Callable[..., Player] | str) -> Policy:
    """A policy from whatever names one: itself, its class, or a reference to it.

    >>> resolve("alb") == resolve(find("alb")) == resolve(find("alb")())
    True
    """
    if isinstance(policy, str):
        return create(policy)
    if isinstance(policy, type) or inspect.isfunction(policy):
        return _checked(policy, policy.__name__, policy.__module__)()
    if not isinstance(policy, Policy):
        raise InvalidInput(f"policy is {policy!r}; accepted: a policy, its class, a name, file.py:Class or module:Class")
    _checked(type(policy), type(policy).__name__, type(policy).__module__)
    return policy


def offered() -> tuple[dict[str, type[Policy]], list[str]]:
    """The policies of installed packages by name, and a sentence for each that cannot be used."""
    usable: dict[str, type[Policy]] = {}
    troubles = hidden()
    for name in sorted(entry_points()):
        if not is_registered(name):
            try:
                usable[name] = _offered(name)
            except InvalidInput as error:
                troubles.append(str(error))
    return usable, troubles


def hidden(name: str | None = None) -> list[str]:
    """A sentence for each policy of an installed package that has the name of one of ours."""
    return [
        f"policy {each!r} of {_package(entry)} is hidden by the one of albatross; accepted for it: {entry.value}"
        for each, entries in sorted(entry_points().items())
        if is_registered(each) and name in (None, each)
        for entry in entries
    ]


def _offered(name: str) -> type[Policy]:
    """The policy that an installed package offers under that name."""
    entries = entry_points().get(name, [])
    if not entries:
        file = Path(f"{name}.py")
        hint = f", as {file}:Class" if name and file.is_file() else ""
        raise InvalidInput(f"{unknown('policy', name, [*names(), *entry_points()])}; also accepted: file.py:Class and module:Class{hint}")
    if len(entries) > 1:
        values = ", ".join(f"{entry.value} ({_package(entry)})" for entry in entries)
        raise InvalidInput(f"policy {name!r} is offered by more than one package; accepted: {values}")
    entry = entries[0]
    try:
        return _chosen(load_module(entry.module), entry.attr, entry.module)
    except InvalidInput as error:
        raise InvalidInput(f"policy {name!r} of {_package(entry)} cannot be used: {error}") from error


def _package(entry: Any) -> str:
    return "an installed package" if entry.dist is None else f"package {entry.dist.name} {entry.dist.version}"


def _policies_in(module: ModuleType) -> dict[str, type[Policy]]:
    """The policies that a module itself declares, by name."""
    classes = ((name, value) for name, value in vars(module).items() if isinstance(value, type) and issubclass(value, Policy))
    return {name: value for name, value in classes if value.__module__ == module.__name__}


def _chosen(module: ModuleType, name: str, given: str) -> type[Policy]:
    """The policy of that name in a module; without a name, the only one."""
    known = _policies_in(module)
    if not name and len(known) != 1:
        if not known:
            raise InvalidInput(f"{given} declares no policy; accepted: a file with a class derived from albatross.core.policy.Policy")
        raise InvalidInput(f"{given} has the policies {', '.join(known)}; accepted: one of them, as {given}:{next(iter(known))}")
    name = name or next(iter(known))
    found: Any = module
    for word in name.split("."):
        if not hasattr(found, word):
            raise unknown(f"policy of {given}", name, known)
        found = getattr(found, word)
    return _checked(found, name, given)


def _checked(found: Any, name: str, given: str) -> type[Policy]:
    """Refuse anything but a usable policy."""
    try:
        policy = recipe(found)  # for a policy in plain Python, the class of its parameters
    except InvalidInput as error:
        raise InvalidInput(f"{name} of {given} is no policy: {error}, or a class derived from albatross.core.policy.Policy") from error
    if inspect.isabstract(policy):
        missing = ", ".join(sorted(policy.__abstractmethods__))
        raise InvalidInput(f"policy {name} of {given} does not define {missing}; accepted: a policy that does")
    parameters = vars(policy).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise InvalidInput(f"policy {name} of {given} is no frozen dataclass; accepted: @dataclass(frozen=True) above the class")
    digest_of(policy)  # so that it can be found by its digest
    return policy
