"""A study: data sets, policies, grids and seeds, written in TOML, and the trials it asks for."""

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from albatross import environments, policies
from albatross.core.environment import Environment
from albatross.core.errors import InvalidInput, check_whole, unknown
from albatross.core.exchange import check_shards
from albatross.core.policy import Policy
from albatross.metrics.ndcg import NDCG
from albatross.studies.showing import label
from albatross.studies.trials import Trial

KEYS = ("title", "horizon", "seeds", "ndcg", "datasets", "policies")
BLOCK_KEYS = ("name", "on")


@dataclass(frozen=True)
class Cell:
    """One policy in one environment: what the seeds are averaged over."""

    dataset: str
    """The label of the data set within the study."""
    environment: Environment
    policy: Policy
    shards: int = 1
    exchange: int | None = None
    """How many users come between two exchanges of the shards at most; none: one per four items."""

    @property
    def label(self) -> str:
        """What it is called within its data set."""
        return label(self.policy, self.shards, self.exchange)


@dataclass(frozen=True)
class Study:
    """A grid of trials."""

    title: str
    horizon: int
    seeds: tuple[int, ...]
    ndcg: NDCG | None
    cells: tuple[Cell, ...]

    def trials(self) -> list[Trial]:
        """Every cell with every seed, in the order of the file."""
        return [trial for cell in self.cells for trial in self.trials_of(cell)]

    def trials_of(self, cell: Cell) -> list[Trial]:
        """One of its cells with every seed."""
        return [
            Trial(cell.policy, cell.environment, self.horizon, seed, self.ndcg, cell.dataset, cell.shards, cell.exchange)
            for seed in self.seeds
        ]


def read_study(path: str | Path) -> Study:
    """The study in a TOML file.

    `datasets` is a list of names or files, or of tables with `name`, parameters and, where a name occurs twice, a `label`. Each
    `[[policies]]` has a `name` and parameters; the name may be file.py:Class, with a path that begins beside the TOML file. A
    parameter with a list of values is one axis of a grid. `on` restricts a block to some data sets. `shards` is on how many shards
    the users live, `exchange` how many of them come between two exchanges at most; both may be lists. `seeds` is a number of seeds, or a
    list of them. `ndcg` is true, false or a table.
    """
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"{file} is missing; accepted: a study in TOML") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} is not TOML: {error}") from error
    try:
        return parse_study(content, file.stem, file.parent)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from error


def parse_study(content: dict[str, Any], title: str = "", beside: Path | None = None) -> Study:
    """The study in a table. Relative paths to files of policies begin at `beside`, or here."""
    for key in content:
        if key not in KEYS:
            raise unknown("key", key, KEYS)
    for key in ("horizon", "seeds", "datasets", "policies"):
        if key not in content:
            raise InvalidInput(f"{key} is missing; accepted keys: {', '.join(KEYS)}")
    worlds = dict(_dataset(entry) for entry in content["datasets"])
    if len(worlds) < len(content["datasets"]):
        raise InvalidInput("two data sets have the same name; accepted: a `label` for each")
    cells = [cell for block in content["policies"] for cell in _cells(block, worlds, beside)]
    for number, cell in enumerate(cells):
        if cell in cells[:number]:
            raise InvalidInput(f"{cell.label} on {cell.dataset} is asked for twice; accepted: each once")
    return Study(content.get("title", title), _horizon(content["horizon"]), _seeds(content["seeds"]), _ndcg(content), tuple(cells))


def _dataset(entry: Any) -> tuple[str, Environment]:
    table = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict) or not isinstance(table.get("name"), str) or not isinstance(table.get("label", ""), str):
        raise InvalidInput(f"data set {entry!r}; accepted: a name, a file, or a table with a name and parameters")
    parameters = {key: value for key, value in table.items() if key not in ("name", "label")}
    return str(table.get("label", table["name"])), environments.create(table["name"], parameters)


def _cells(block: Any, worlds: dict[str, Environment], beside: Path | None) -> Iterator[Cell]:
    if not isinstance(block, dict) or not isinstance(block.get("name"), str):
        raise InvalidInput(f"policy {block!r}; accepted: a table with a name and parameters")
    labels = block.get("on", list(worlds))
    for name in labels:
        if name not in worlds:
            raise unknown("data set in `on`", name, worlds)
    axes = {key: value if isinstance(value, list) else [value] for key, value in block.items() if key not in BLOCK_KEYS}
    for name in labels:
        for values in itertools.product(*axes.values()):
            parameters = dict(zip(axes, values, strict=True))
            shards, exchange = parameters.pop("shards", 1), parameters.pop("exchange", None)
            policy = policies.create(block["name"], parameters, beside)
            check_shards(policy, shards)
            if exchange is not None:
                check_whole("exchange", exchange, 1)
            yield Cell(name, worlds[name], policy, shards, exchange if shards > 1 else None)


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
