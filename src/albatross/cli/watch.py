"""`albatross watch`: policies side by side on a web page, while they run."""

import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from albatross.cli.arguments import parse_policy
from albatross.cli.comparing import DEFAULT_POLICIES, Ends, find_environment, seeds_of
from albatross.core.errors import InvalidInput
from albatross.service.http.logs import configure_log
from albatross.service.http.process import ListenAddress
from albatross.service.http.stage import FASTEST, Stage
from albatross.studies.arena import Arena, run_before_eyes

SPEED = 2_000.0
"""Steps per second: a quarter of a minute for the default horizon."""


def watch(
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
    json: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    figure: Path | None = None,
    speed: float = SPEED,
    port: int = 0,
    browser: bool = True,
    stay: bool = True,
) -> None:
    """Run policies side by side and watch their curves grow on a web page of this machine. The speed can be changed there.

    The final numbers are those of albatross run with the same arguments.

    Example: albatross watch --policy mean-field --policy alb --dataset gaussian

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
        Runs per policy, with the seeds 0, 1, 2, …; all of them at the same time.
    first_seed
        Begin with this seed instead of 0.
    json
        Write parameters and curves to this file in the end; with -, to standard output in place of the table.
    figure
        Draw cumulative regret to this .png, .svg or .pdf file in the end.
    speed
        Steps per second at the start; 0: wait for the page; inf: no limit.
    port
        Port of the page; 0 for any free port.
    browser
        Open the page in a browser, if there is one.
    stay
        Keep the page open at the end, until you press Ctrl-C.
    """
    if not 0 <= port <= 65535:
        raise InvalidInput(f"--port is {port}; accepted: 0 to 65535")
    if not speed >= 0:
        raise InvalidInput(f"--speed is {speed:g}; accepted: steps a second, 0 to wait, inf for no limit")
    ends = Ends(json, figure)
    numbers = seeds_of(horizon, seeds, first_seed)
    contenders = [parse_policy(word) for word in policy or DEFAULT_POLICIES]
    columns = {"user_column": user_column, "item_column": item_column, "rating_column": rating_column}
    environment = find_environment(dataset, protocol, world or [], columns)
    arena = Arena(contenders, dataset, environment, horizon, numbers)
    configure_log("text", sys.stderr)
    stage = Stage(min(speed, FASTEST))
    with ListenAddress(port=port).listen() as listening, stage.serve(listening):
        page = f"http://127.0.0.1:{listening.getsockname()[1]}/#/arena"
        print(f"Watch it at {page}", file=sys.stderr, flush=True)
        if browser:
            webbrowser.open(page)
        run_before_eyes(arena, stage.allow, stage.show)
        ends.meet(arena.comparison())
        if stay:
            print("All steps are done. The page stays until the interrupt key.", file=sys.stderr, flush=True)
            _wait_for_interrupt()


def _wait_for_interrupt() -> None:
    """Ctrl-C ends the command normally."""
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print(file=sys.stderr)
