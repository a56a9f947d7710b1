"""Simulated publics: synthetic worlds, and logged ratings as a world."""

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from albatross import datasets
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput, unknown
from albatross.core.parameters import Recipe
from albatross.datasets.tabular import EXTENSIONS
from albatross.environments.further import FURTHER
from albatross.environments.ratings import Protocol, Ratings, RatingsFile
from albatross.environments.shop import Shop
from albatross.environments.synthetic import WORLDS, Synthetic

SYNTHETIC: dict[str, type[Synthetic]] = {**WORLDS, **FURTHER, "shop": Shop}
"""The three worlds of the paper, and further ones."""

PROTOCOLS: dict[str, dict[str, bool]] = {
    "repeats": {"repeats": True, "clicks": False},
    "no-repeats": {"repeats": False, "clicks": False},
    "clicks": {"repeats": True, "clicks": True},
    "clicks-no-repeats": {"repeats": False, "clicks": True},
}
"""The protocols (whether items are shown again, and what a reward is), with their parameters."""

FILE = f"FILE ({', '.join(EXTENSIONS)})"


def recipes() -> dict[str, tuple[type[Recipe], ...]]:
    """The class whose fields are the parameters of each data set, by name; the last one is for any file."""
    logged = {name: (datasets.find(name), Protocol) for name in datasets.names()}
    return {**{name: (world,) for name, world in SYNTHETIC.items()}, **logged, FILE: (RatingsFile, Protocol)}


def create(name_or_file: str, parameters: dict[str, Any] | None = None) -> Environment:
    """The data set of that name, or the ratings of that file, with parameters as in a study file.

    `protocol` is one of `PROTOCOLS`, and sets the parameters listed there.

    >>> create("gaussian", {"rank": 3}).parameters()["rank"]
    3
    >>> create("gaussian", {"protocol": "no-repeats"}).parameters()["repeats"]
    False
    """
    return _create(name_or_file, _spelled_out(parameters or {}, lambda value: value), _from_values)


def from_text(name_or_file: str, settings: dict[str, str] | None = None) -> Environment:
    """The same from `key=value` words, as typed on a command line.

    >>> from_text("gaussian", {"rank": "3"}).parameters()["rank"]
    3
    """
    words = _spelled_out(settings or {}, lambda value: str(value).lower())
    return _create(name_or_file, words, lambda recipe, words: recipe.from_text(words))


def _spelled_out(given: dict[str, Any], as_given: Callable[[bool], Any]) -> dict[str, Any]:
    """The same parameters, with the name of the protocol replaced by its parameters."""
    if "protocol" not in given:
        return given
    name = given["protocol"]
    if name not in PROTOCOLS:
        raise unknown("protocol", name, PROTOCOLS)
    others = {key: value for key, value in given.items() if key != "protocol"}
    for key in PROTOCOLS[name]:
        if key in others:
            raise InvalidInput(f"protocol is {name!r} and {key} is {others[key]!r}; accepted: one of them")
    return {**others, **{key: as_given(value) for key, value in PROTOCOLS[name].items()}}


def from_file(
    path: str | os.PathLike[str],
    user_column: str = "user",
    item_column: str = "item",
    rating_column: str = "rating",
    repeats: bool = True,
) -> Ratings:
    """The ratings of a .csv, .tsv or .parquet file as an environment: candidates are the items that a user rated, rewards their ratings.

    Ids may be any text or numbers; other columns are ignored. `repeats`: whether a user may be shown an item again.
    """
    return Ratings(RatingsFile(user_column, item_column, rating_column).load(path), **Protocol(repeats).parameters())


def _create(name: str, given: dict[str, Any], build: Callable[[type[Recipe], dict[str, Any]], Any]) -> Environment:
    if name in SYNTHETIC:
        environment: Environment = build(SYNTHETIC[name], given)
        return environment
    of_protocol = {field.name for field in fields(Protocol)}
    of_source = {key: value for key, value in given.items() if key not in of_protocol}
    if name in datasets.names():
        table = build(datasets.find(name), of_source).load()
    elif Path(name).suffix or Path(name).exists() or len(Path(name).parts) > 1:
        table = build(RatingsFile, of_source).load(name)
    else:
        raise InvalidInput(f"{unknown('data set', name, [*SYNTHETIC, *datasets.names()])}; or a file ending in {', '.join(EXTENSIONS)}")
    return Ratings(table, **build(Protocol, {key: given[key] for key in given if key in of_protocol}).parameters())


def _from_values(recipe: type[Recipe], values: dict[str, Any]) -> Recipe:
    known = [field.name for field in fields(recipe)]
    for name in values:
        if name not in known:
            raise unknown(f"parameter of {recipe.__name__}", name, known)
    return recipe(**values)
