"""A study: data sets, policies, grids and seeds, written in TOML, and its trials."""

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from albatross import environments, policies
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput, check_whole, unknown
from albatross.core.policy import Policy
from albatross.core.sharing.exchange import check_shards
from albatross.metrics.ndcg import NDCG
from albatross.studies.showing import label
from albatross.studies.trials import Trial

KEYS = ("title", "horizon", "seeds", "ndcg", "datasets", "policies", "tuning", "like")
BLOCK_KEYS = ("name", "on", "tune")
DATASET_KEYS = ("name", "label", "horizon", "ndcg")
TUNING_KEYS = ("seeds", "horizon")

World = tuple[Environment, int | None, bool]
"""A data set of a study: environment, horizon, and whether rankings are measured."""


@dataclass(frozen=True)
class Cell:
    """One policy in one environment, over which the seeds are averaged."""

    dataset: str
    """The label of the data set within the study."""
    environment: Environment
    policy: Policy
    shards: int = 1
    exchange: int | None = None
    """Limit of arrivals between two exchanges of the shards; None: one per four items."""
    horizon: int | None = None
    """None: that of the study."""
    ranked: bool = True
    """Whether rankings are measured, if the study measures them: some worlds have negative relevances."""

    @property
    def label(self) -> str:
        """Its name within the data set."""
        return label(self.policy, self.shards, self.exchange)


@dataclass(frozen=True)
class Choice:
    """Several cells on one data set, of which one is kept: the one with the least regret on the tuning seeds."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Study:
    """A grid of trials."""

    title: str
    horizon: int
    seeds: tuple[int, ...]
    ndcg: NDCG | None
    cells: tuple[Cell, ...]
    choices: tuple[Choice, ...] = ()
    """Open until the tuning is finished."""
    tuning_seeds: tuple[int, ...] = ()
    """None of them is a seed of the study."""
    tuning_horizon: int = 0

    def trials(self) -> list[Trial]:
        """Every cell with every seed, in the order of the file."""
        return [trial for cell in self.cells for trial in self.trials_of(cell)]

    def trials_of(self, cell: Cell) -> list[Trial]:
        """One cell with every seed."""
        horizon = self.horizon if cell.horizon is None else cell.horizon
        ndcg = self.ndcg if cell.ranked else None
        return [Trial(cell.policy, cell.environment, horizon, seed, ndcg, cell.dataset, cell.shards, cell.exchange) for seed in self.seeds]

    def tuning(self) -> "Study":
        """The trials that decide the choices."""
        cells = dict.fromkeys(cell for choice in self.choices for cell in choice.cells)
        return Study(f"{self.title}: tuning", self.tuning_horizon, self.tuning_seeds, None, tuple(cells))


def read_study(path: str | Path) -> Study:
    """The study in a TOML file.

    `datasets` is a list of names or files, or of tables with `name`, parameters and, if a name occurs twice, a `label`. Such a table may
    have its own `horizon`, and `ndcg = false` if rankings cannot be measured. Each `[[policies]]` has a `name` and parameters. The name
    may be file.py:Class, with a path relative to the TOML file. A parameter with a list of values is one axis of a grid. `on` restricts
    a block to some data sets. `shards` is the number of shards that the users live on, `exchange` the limit of arrivals between two
    exchanges; both may be lists. `seeds` is a number of seeds, or a list of them. `ndcg` is true, false or a table.

    `tune` in a block is a table of lists: per data set, the best point of that grid on the seeds of `[tuning]` is kept, and run on the
    seeds of the study. `[tuning]` has `seeds`, and a `horizon` if it differs from that of the study. `like` names a study beside this
    one: keys that are missing here are taken from there.
    """
    file = Path(path)
    content = _content(file)
    try:
        if "like" in content:
            content = _content(_beside(file, content["like"])) | content
        return parse_study(content, file.stem, file.parent)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from error


def _content(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"{file} is missing; accepted: a study in TOML") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} is not TOML: {error}") from error


def _beside(file: Path, name: Any) -> Path:
    if not isinstance(name, str) or name == file.name or "like" in _content(file.parent / name):
        raise InvalidInput(f"like is {name!r}; accepted: the name of another study, one that has no `like` itself")
    return file.parent / name


def parse_study(content: dict[str, Any], title: str = "", beside: Path | None = None) -> Study:
    """The study in a table. Relative paths to files of policies are relative to `beside`, or to the current folder."""
    for key in content:
        if key not in KEYS:
            raise unknown("key", key, KEYS)
    for key in ("horizon", "seeds", "datasets", "policies"):
        if key not in content:
            raise InvalidInput(f"{key} is missing; accepted keys: {', '.join(KEYS)}")
    worlds = dict(_dataset(entry) for entry in content["datasets"])
    if len(worlds) < len(content["datasets"]):
        raise InvalidInput("two data sets have the same name; accepted: a `label` for each")
    groups = [group for block in content["policies"] for group in _choices(block, worlds, beside)]
    choices = tuple(choice for tuned, choice in groups if tuned)
    cells = [cell for tuned, choice in groups if not tuned for cell in choice.cells]
    for number, cell in enumerate(cells):
        if cell in cells[:number]:
            raise InvalidInput(f"{cell.label} on {cell.dataset} is asked for twice; accepted: each once")
    horizon, seeds = _horizon(content["horizon"]), _seeds(content["seeds"])
    study = Study(content.get("title", title), horizon, seeds, _ndcg(content), tuple(cells), choices)
    return replace(study, **_tuning(content.get("tuning"), study)) if choices else study


def _tuning(table: Any, study: Study) -> dict[str, Any]:
    if not isinstance(table, dict) or "seeds" not in table:
        raise InvalidInput("a block has `tune`, but the study has no seeds to tune on; accepted: a table [tuning] with seeds")
    for key in table:
        if key not in TUNING_KEYS:
            raise unknown("key of tuning", key, TUNING_KEYS)
    if not isinstance(table["seeds"], list) or set(table["seeds"]) & set(study.seeds):
        raise InvalidInput(f"tuning.seeds is {table['seeds']!r}; accepted: a list of whole numbers, none of them a seed of the study")
    return {"tuning_seeds": _seeds(table["seeds"]), "tuning_horizon": _horizon(table.get("horizon", study.horizon))}


def _dataset(entry: Any) -> tuple[str, World]:
    """Label, environment and its special settings."""
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or not isinstance(table.get("name"), str) or not isinstance(table.get("label", ""), str):
        raise InvalidInput(f"data set {entry!r}; accepted: a name, a file, or a table with a name and parameters")
    parameters = {key: value for key, value in table.items() if key not in DATASET_KEYS}
    horizon = _horizon(table["horizon"]) if "horizon" in table else None
    ranked = table.get("ndcg", True)
    if not isinstance(ranked, bool):
        raise InvalidInput(f"ndcg of data set {table['name']!r} is {ranked!r}; accepted: true, false")
    return str(table.get("label", table["name"])), (environments.create(table["name"], parameters), horizon, ranked)


def _choices(block: Any, worlds: dict[str, World], beside: Path | None) -> Iterator[tuple[bool, Choice]]:
    """Per data set the grid of a block, and whether it is to be tuned."""
    if not isinstance(block, dict) or not isinstance(block.get("name"), str):
        raise InvalidInput(f"policy {block!r}; accepted: a table with a name and parameters")
    labels = block.get("on", list(worlds))
    for name in labels:
        if name not in worlds:
            raise unknown("data set in `on`", name, worlds)
    tuned = block.get("tune", {})
    if not isinstance(tuned, dict) or not all(isinstance(values, list) and values for values in tuned.values()):
        raise InvalidInput(f"tune is {tuned!r}; accepted: a table of parameters, each with a list of values")
    given = {key: value for key, value in block.items() if key not in BLOCK_KEYS}
    for key in given.keys() & tuned.keys():
        raise InvalidInput(f"{key} is given and tuned; accepted: one of them")
    axes = {key: value if isinstance(value, list) else [value] for key, value in (given | tuned).items()}
    for name in labels:
        grid = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
        yield bool(tuned), Choice(tuple(_cell(name, worlds[name], block["name"], parameters, beside) for parameters in grid))


def _cell(name: str, world: World, policy_name: str, parameters: dict[str, Any], beside: Path | None) -> Cell:
    shards, exchange = parameters.pop("shards", 1), parameters.pop("exchange", None)
    policy = policies.create(policy_name, parameters, beside)
    check_shards(policy, shards)
    if exchange is not None:
        check_whole("exchange", exchange, 1)
    environment, horizon, ranked = world
    return Cell(name, environment, policy, shards, exchange if shards > 1 else None, horizon, ranked)


def _horizon(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise InvalidInput(f"horizon is {value!r}; accepted: a whole number, at least 1")
    return value


def _seeds(value: Any) -> tuple[int, ...]:
    seeds = list(range(value)) if type(value) is int else value
    if (
        not isinstance(seeds, list)
        or not seeds
        or not all(type(seed) is int and seed >= 0 for seed in seeds)
        or len(set(seeds)) < len(seeds)
    ):
        raise InvalidInput(f"seeds is {value!r}; accepted: a number of seeds, at least 1, or a list of different whole numbers")
    return tuple(seeds)


def _ndcg(content: dict[str, Any]) -> NDCG | None:
    value = content.get("ndcg", False)
    if isinstance(value, bool):
        return NDCG() if value else None
    if not isinstance(value, dict):
        raise InvalidInput(f"ndcg is {value!r}; accepted: true, false, or a table with depth and gain")
    for key in value:
        if key not in ("depth", "gain"):
            raise unknown("key of ndcg", key, ("depth", "gain"))
    return NDCG(**value)
