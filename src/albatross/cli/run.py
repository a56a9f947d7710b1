"""`albatross run`: policies side by side on one data set."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from albatross import environments, policies
from albatross.cli.arguments import parse_policy, parse_settings
from albatross.cli.drawing import check_format, save_comparison
from albatross.cli.tables import print_comparison
from albatross.cli.terminal import TERMINAL
from albatross.core.errors import InvalidInput, check_whole
from albatross.studies.comparison import compare
from albatross.studies.report.comparison import as_text, save_json

STANDARD_OUTPUT = Path("-")
"""Stands for it in place of a file."""

DEFAULT_POLICIES = (policies.DEFAULT, "alb", "random")


def run(
    *,
    policy: Annotated[list[str] | None, Parameter(negative=())] = None,
    setting: Annotated[list[str] | None, Parameter(name="--set", negative=())] = None,
    dataset: str,
    protocol: str | None = None,
    world: Annotated[list[str] | None, Parameter(negative=())] = None,
    user_column: str | None = None,
    item_column: str | None = None,
    rating_column: str | None = None,
    horizon: int = 25_000,
    seeds: int = 10,
    first_seed: int = 0,
    shards: int = 1,
    exchange: int | None = None,
    jobs: int | None = None,
    json: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    figure: Path | None = None,
) -> None:
    """Run policies side by side: at the same seed every policy meets the same arrivals and the same noise.

    Example: albatross run --policy mean-field --policy alb --set ridge=0.01 --set noise=0.5 --dataset gaussian

    Parameters
    ----------
    policy
        Name of a policy (see: albatross list), file.py:Class or module:Class; may be given several times.
        If not given: mean-field, alb and random.
    setting
        Parameter of the policy named before it, as key=value; may be given several times.
    dataset
        Name of a data set, or a .csv, .tsv or .parquet file with the columns user, item and rating.
    protocol
        How the data set is lived through: repeats (a user may be shown an item again), no-repeats, clicks (a rating is 1 if it is
        good, else 0) or clicks-no-repeats.
    world
        Parameter of the data set, as key=value; may be given several times.
    user_column
        The column of the file that names the user, if not "user".
    item_column
        The column of the file that names the item, if not "item".
    rating_column
        The column of the file that holds the rating, if not "rating".
    horizon
        Steps per run: a user arrives, is shown one item and rates it.
    seeds
        Runs per policy, with the seeds 0, 1, 2, …
    first_seed
        Begin with this seed instead of 0.
    shards
        Let users live on so many shards, each an agent of its own; the shards of a run are in several processes.
    exchange
        How many users come between two exchanges of the shards at most, later on; if not given, one per four items.
    jobs
        Processes to use; if not given, one per core, or one where there is one seed and one shard.
    json
        Write parameters and curves to this file; with -, to standard output in place of the table.
    figure
        Draw cumulative regret to this .png, .svg or .pdf file.
    """
    wholes = {"--horizon": horizon, "--seeds": seeds, "--shards": shards, "--exchange": exchange, "--jobs": jobs}
    for name, value, least in (*((name, value, 1) for name, value in wholes.items()), ("--first-seed", first_seed, 0)):
        if value is not None:
            check_whole(name, value, least)
    if exchange is not None and shards == 1:
        raise InvalidInput("--exchange without shards to exchange anything; accepted: with --shards 2 or more")
    for option, file in (("--json", json), ("--figure", figure)):
        _check_target(option, file)
    if figure is not None:
        check_format(figure, "--figure")
    contenders = [parse_policy(word) for word in policy or DEFAULT_POLICIES]
    columns = {"user_column": user_column, "item_column": item_column, "rating_column": rating_column}
    settings = parse_settings("--world", world or [])
    if protocol is not None:
        settings["protocol"] = protocol
    settings.update({key: column for key, column in columns.items() if column is not None})
    environment = environments.from_text(dataset, settings)
    comparison = compare(contenders, dataset, environment, horizon, range(first_seed, first_seed + seeds), jobs, TERMINAL, shards, exchange)
    if json == STANDARD_OUTPUT:
        print(as_text(comparison))
    else:
        print_comparison(comparison)
        if json is not None:
            save_json(comparison, json)
    if figure is not None:
        save_comparison(comparison, figure)


def _check_target(option: str, file: Path | None) -> None:
    """Refuse a file that could not be written before anybody waits for what would be in it."""
    if file is None or (option == "--json" and file == STANDARD_OUTPUT):
        return
    if file.is_dir():
        raise InvalidInput(f"{option} is {file}, a folder; accepted: the name of a file")
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        raise InvalidInput(f"{option} is {file}; accepted: a file in a folder that exists and can be written to")
