"""`albatross run`: policies side by side on one data set."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from albatross.cli.arguments import parse_policy
from albatross.cli.comparing import DEFAULT_POLICIES, Ends, find_environment, seeds_of
from albatross.cli.terminal import TERMINAL
from albatross.core.errors import InvalidInput, check_whole
from albatross.studies.comparison import compare


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
    """Run policies side by side on one data set. At the same seed every policy meets the same arrivals and the same noise.

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
        What may be shown again and what a reward is: repeats (a user may be shown an item again), no-repeats, clicks (the reward is 1
        for a good rating, else 0) or clicks-no-repeats.
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
        Split the users over this many shards, each with its own agent, in several processes.
    exchange
        The largest number of arrivals between two exchanges of the shards; if not given, one per four items.
    jobs
        Processes to use; if not given, one per core (one for a single seed and shard).
    json
        Write parameters and curves to this file; with -, to standard output in place of the table.
    figure
        Draw cumulative regret to this .png, .svg or .pdf file.
    """
    for name, value in (("--shards", shards), ("--exchange", exchange), ("--jobs", jobs)):
        if value is not None:
            check_whole(name, value, 1)
    if exchange is not None and shards == 1:
        raise InvalidInput("--exchange is given without shards; accepted: --exchange with --shards 2 or more")
    ends = Ends(json, figure)
    numbers = seeds_of(horizon, seeds, first_seed)
    contenders = [parse_policy(word) for word in policy or DEFAULT_POLICIES]
    columns = {"user_column": user_column, "item_column": item_column, "rating_column": rating_column}
    environment = find_environment(dataset, protocol, world or [], columns)
    ends.meet(compare(contenders, dataset, environment, horizon, numbers, jobs, TERMINAL, shards, exchange))
