"""`albatross list`: policies and data sets."""

import dataclasses
import sys
from json import dumps
from typing import Annotated, Any, get_type_hints

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from albatross import environments, policies
from albatross.core.errors import unknown
from albatross.core.parameters import Recipe, describe
from albatross.core.policy import Policy
from albatross.studies.showing import show_needs, show_value

INSTALLED = "Policies of other packages"
OUTSIDE = "Policies from outside"
POLICIES = "Policies (--policy NAME --set parameter=value)"
DATASETS = "Data sets (--dataset NAME --world parameter=value)"


def show(
    *names: str, short: Annotated[bool, Parameter(negative=())] = False, json: Annotated[bool, Parameter(negative=())] = False
) -> None:
    """Print the policies and the data sets, with their parameters, defaults and what they accept.

    Parameters
    ----------
    names
        Print only these; file.py:Class and module:Class are accepted.
    short
        One line each, without parameters.
    json
        Print one JSON object, by name, for programs.
    """
    installed, troubles = policies.offered()
    sections: dict[str, dict[str, tuple[type[Recipe], ...]]] = {
        POLICIES: {name: (policies.find(name),) for name in sorted(policies.names(), key=lambda name: (name != policies.DEFAULT, name))},
        INSTALLED: {name: (policy,) for name, policy in installed.items()},
        DATASETS: environments.recipes(),
    }
    known = [name for section in sections.values() for name in section]
    for name in names:
        if name.endswith(".py") or ":" in name:
            sections[OUTSIDE] = sections.get(OUTSIDE, {}) | {name: (policies.find(name),)}
        elif name not in known:
            raise unknown("policy or data set", name, known)
    if json:
        print(as_json({name: parts for section in sections.values() for name, parts in section.items() if not names or name in names}))
        return
    console = Console(highlight=False)
    for heading, section in sections.items():
        chosen = {name: parts for name, parts in section.items() if not names or name in names}
        if chosen:
            console.print(Text(heading, style="bold underline"), end="\n\n")
        for name, parts in chosen.items():
            summary = (parts[0].__doc__ or "").strip().partition("\n")[0]
            console.print(Text.assemble((name, "bold"), "  ", summary))
            if short:
                continue
            if issubclass(parts[0], Policy):
                for line in (_told(parts[0]), parts[0].reference()):
                    console.print(Padding(Text(line, style="dim"), (0, 0, 0, 2)))
            table = _parameters(parts)
            if table.row_count:
                console.print(Padding(table, (0, 0, 0, 2)))
            console.print()
    for trouble in troubles:
        print(f"albatross: {trouble}", file=sys.stderr)


def _told(policy: type[Policy]) -> str:
    """What a policy is told beforehand unless its parameters say otherwise."""
    if any(field.default is dataclasses.MISSING for field in dataclasses.fields(policy)):
        return "Told beforehand: what its parameters say."
    return f"Told beforehand: {show_needs(policy())}."


def as_json(chosen: dict[str, tuple[type[Recipe], ...]]) -> str:
    """Policies and data sets as plain values."""
    return dumps({name: _described(parts) for name, parts in chosen.items()}, ensure_ascii=False, indent=1)


def _described(parts: tuple[type[Recipe], ...]) -> dict[str, Any]:
    fields = [(field, get_type_hints(recipe)[field.name]) for recipe in parts for field in dataclasses.fields(recipe)]
    return {
        "kind": "policy" if issubclass(parts[0], Policy) else "data set",
        "summary": (parts[0].__doc__ or "").strip().partition("\n")[0],
        "parameters": {
            field.name: {
                "default": None if field.default is dataclasses.MISSING else field.default,
                "accepted": describe(field, hint),
                "meaning": field.metadata.get("meaning", ""),
            }
            for field, hint in fields
        },
    }


def _parameters(parts: tuple[type[Recipe], ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for heading in ("parameter", "default"):
        table.add_column(heading, no_wrap=True)
    table.add_column("accepted", ratio=3)
    table.add_column("meaning", ratio=4)
    for recipe in parts:
        hints = get_type_hints(recipe)
        for field in dataclasses.fields(recipe):
            default = "–" if field.default is dataclasses.MISSING else show_value(field.default)
            accepted = describe(field, hints[field.name])
            table.add_row(*(Text(cell) for cell in (field.name, default, accepted, field.metadata.get("meaning", ""))))
    return table
