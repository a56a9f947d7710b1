"""Rating data sets. One file per source; the file name is the registration."""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from albatross.core.errors import InvalidInput, unknown
from albatross.core.parameters import Recipe
from albatross.core.ratings import RatingTable, Scale, Summary
from albatross.datasets import archive
from albatross.datasets.archive import Archive, Tell, quietly

NOT_SOURCES = ("archive", "grouplens", "tabular")
"""Files of this folder that are not data sets."""


@dataclass(frozen=True)
class DataSet(Recipe, ABC):
    """Derive from this in a file of `albatross.datasets`; the file name is the data set's name. Fields select a part of the data."""

    title: ClassVar[str]
    home: ClassVar[str]
    """The address of the page that describes it."""
    archives: ClassVar[tuple[Archive, ...]]
    citation: ClassVar[str]
    scale: ClassVar[Scale]

    def needed(self) -> tuple[Archive, ...]:
        """The archives to read from."""
        return self.archives

    @abstractmethod
    def read(self, *paths: Path) -> RatingTable:
        """The ratings, from the archives that are needed."""

    def fetch(self, accept: bool | None = None, tell: Tell = quietly) -> list[Path]:
        """The archives, downloaded if they are missing, and checked for damage.

        accept: whether the user agrees to the terms of use. None: ask on a terminal, unless the user has agreed before.
        tell: is called with notes for the user.
        """
        paths = [archive.fetch(needed, accept, tell) for needed in self.needed()]
        for path in paths:
            archive.verify(path)
        return paths

    def load(self, accept: bool | None = None, tell: Tell = quietly) -> RatingTable:
        """The ratings, downloaded if they are missing. The arguments are those of `fetch`."""
        paths = [archive.fetch(needed, accept, tell) for needed in self.needed()]
        table = self.read(*paths)
        low, high = self.scale
        outside = ~((table.ratings >= low) & (table.ratings <= high))
        if outside.any() or not table.ratings.size:
            reason = f"a rating is {table.ratings[outside][0]:g}" if outside.any() else "there is no rating"
            raise InvalidInput(f"{', '.join(map(str, paths))}: {reason}; accepted: ratings from {low:g} to {high:g}")
        return table

    @property
    def terms(self) -> str:
        return self.archives[0].terms

    @classmethod
    def dataset_name(cls) -> str:
        return cls.__module__.rpartition(".")[2].replace("_", "-")


class Entry(NamedTuple):
    """A data set as shown in a list."""

    dataset: DataSet
    paths: tuple[Path, ...]
    """Those of its archives that are on this machine."""
    summary: Summary | None
    """None if an archive is missing or unusable."""
    remarks: tuple[str, ...]
    """Why it is missing or unusable, or how it differs from the official one."""


def names() -> list[str]:
    """The registered data sets: `jester_2.py` is called `jester-2`."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__) if module.name not in NOT_SOURCES)


def find(name: str) -> type[DataSet]:
    """The class of the data set of that name.

    >>> find("movielens-100k").title
    'MovieLens 100K'
    """
    if name not in names():
        raise unknown("data set", name, names())
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    classes = (value for value in vars(module).values() if isinstance(value, type) and issubclass(value, DataSet))
    (found,) = (value for value in classes if value.__module__ == module.__name__)
    return found


def create(name: str, parameters: dict[str, Any] | None = None) -> DataSet:
    """A data set from its name and parameters, as in a study file."""
    dataset = find(name)
    known = dataset.__dataclass_fields__
    for parameter in parameters or {}:
        if parameter not in known:
            raise unknown(f"parameter of {name}", parameter, known)
    return dataset(**(parameters or {}))


def listing() -> Iterator[Entry]:
    """Every data set with its default parameters: those on this machine are read, none is downloaded."""
    for name in names():
        dataset = create(name)
        found = [(needed.name, archive.find(needed)) for needed in dataset.needed()]
        paths = tuple(path for _, path in found if path is not None)
        remarks = [f"{missing} is not here" for missing, path in found if path is None]
        summary = None
        if not remarks:
            try:
                summary = dataset.load(accept=False, tell=remarks.append).describe()
            except InvalidInput as error:
                remarks.append(str(error))
        yield Entry(dataset, paths, summary, tuple(remarks))
