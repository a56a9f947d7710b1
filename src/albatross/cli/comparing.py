"""Shared by `albatross run` and `albatross watch`: arguments and output."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from albatross import environments, policies
from albatross.cli.arguments import parse_settings
from albatross.cli.drawing import check_format, save_comparison
from albatross.cli.tables import print_comparison
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput, check_whole
from albatross.studies.comparison import Comparison
from albatross.studies.report.comparison import as_text, save_json

STANDARD_OUTPUT = Path("-")
"""Means standard output."""

DEFAULT_POLICIES = (policies.DEFAULT, "alb", "random")


class Ends:
    """Where the numbers and the figure go. An unwritable file is refused before anything runs."""

    def __init__(self, json: Path | None, figure: Path | None) -> None:
        self.json, self.figure = json, figure
        for option, file in (("--json", json), ("--figure", figure)):
            _check_target(option, file)
        if figure is not None:
            check_format(figure, "--figure")

    def meet(self, comparison: Comparison) -> None:
        """Print the table or the JSON, and write the files."""
        if self.json == STANDARD_OUTPUT:
            print(as_text(comparison), flush=True)
        else:
            print_comparison(comparison)
            if self.json is not None:
                save_json(comparison, self.json)
        if self.figure is not None:
            save_comparison(comparison, self.figure)


def seeds_of(horizon: int, seeds: int, first_seed: int) -> range:
    """The seeds, after a check of the numbers."""
    for name, value, least in (("--horizon", horizon, 1), ("--seeds", seeds, 1), ("--first-seed", first_seed, 0)):
        check_whole(name, value, least)
    return range(first_seed, first_seed + seeds)


def find_environment(dataset: str, protocol: str | None, world: Sequence[str], columns: Mapping[str, str | None]) -> Environment:
    """The data set with its parameters."""
    settings = parse_settings("--world", world)
    if protocol is not None:
        settings["protocol"] = protocol
    settings.update({key: column for key, column in columns.items() if column is not None})
    return environments.from_text(dataset, settings)


def _check_target(option: str, file: Path | None) -> None:
    """Refuse a file that cannot be written, before anything runs."""
    if file is None or (option == "--json" and file == STANDARD_OUTPUT):
        return
    if file.is_dir():
        raise InvalidInput(f"{option} is {file}, a folder; accepted: the name of a file")
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise InvalidInput(f"{option} is {file}; accepted: a file in a folder that exists and can be written to")
