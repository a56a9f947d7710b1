"""Jester, dataset 1: ratings of 100 jokes, as real numbers, in Excel sheets."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.core.extras import install_command
from albatross.core.parameters import parameter
from albatross.core.ratings import RatingTable, Scale, active_users, restricted, tabulated
from albatross.datasets import DataSet, archive
from albatross.datasets.archive import Archive

N_JOKES = 100
NOT_RATED = 99
"""The value in a sheet for a missing rating."""

_CHECKSUMS = (
    "cb7841756ded125b15f3d95c9f8241224065e96354c132a46ae4214deeab7615",
    "4d312fd824d8c8cb2c9c952a7b1fb7c00d1f5fd3ece370f7285aa701d371748b",
    "7f548d3762d3506cf7cd37d8cb9e3adb67984a7da7aa2d2096d5e0b1b884758d",
)


@dataclass(frozen=True)
class Jester1(DataSet):
    """4,136,360 ratings of 100 jokes by 73,421 users, real numbers from -10 to 10, collected 1999 to 2003, in three parts.

    The default is the first part, so that the same recipe means the same ratings on every machine. A user's name is their row number,
    counted through the parts. Needs `xlrd`, the reader of old Excel files.
    """

    parts: int | None = parameter(1, "how many of the three parts, from the first; none: those that are here", at_least=1, at_most=3)
    n_users: int | None = parameter(None, "how many users, the first ones; none: all", at_least=1)
    min_ratings: int = parameter(1, "users with fewer ratings are left out", at_least=1)

    title: ClassVar[str] = "Jester 1"
    home: ClassVar[str] = "https://eigentaste.berkeley.edu/dataset/"
    archives: ClassVar[tuple[Archive, ...]] = tuple(
        Archive(
            address=f"https://eigentaste.berkeley.edu/dataset/jester_dataset_1_{part}.zip",
            names=(f"jester_dataset_1_{part}.zip",),
            checksum=f"sha256:{checksum}",
            terms="Free for research, when acknowledged by citing the Eigentaste paper.",
        )
        for part, checksum in enumerate(_CHECKSUMS, start=1)
    )
    citation: ClassVar[str] = (
        "Goldberg, Roeder, Gupta, Perkins: Eigentaste: A Constant Time Collaborative Filtering Algorithm. Information Retrieval 4(2), 2001"
    )
    scale: ClassVar[Scale] = (-10, 10)

    def needed(self) -> tuple[Archive, ...]:
        if self.parts is not None:
            return self.archives[: self.parts]
        further = tuple(part for part in self.archives[1:] if archive.find(part) is not None)
        return self.archives[:1] + further

    def read(self, *paths: Path) -> RatingTable:
        sheets = np.concatenate([_sheet(path) for path in paths])
        users, items = np.nonzero(sheets != NOT_RATED)
        ratings = sheets[users, items]
        jokes = np.arange(1, N_JOKES + 1)
        table = tabulated(users + 1, items + 1, ratings, scale=self.scale, source=self.dataset_name(), catalogue=jokes)
        return restricted(table, users=active_users(table, self.min_ratings, self.n_users)[: self.n_users])


def _sheet(path: Path) -> NDArray[np.float64]:
    """The ratings of one part: a row per user, a column per joke. The file's first column, the number of ratings, checks the row."""
    part = path.stem.rpartition("_")[2]
    name = f"jester-data-{part}.xls"
    content, xlrd = archive.member(path, name), _excel_reader()
    try:
        sheet = xlrd.open_workbook(file_contents=content, logfile=io.StringIO()).sheet_by_index(0)
        cells = np.array([sheet.row_values(row) for row in range(sheet.nrows)], np.float64)
        counted, ratings = cells[:, 0], cells[:, 1:]
    except Exception as error:  # xlrd may raise anything
        raise InvalidInput(f"{path}: {name} is damaged: {error or type(error).__name__}") from error
    if ratings.shape[1] != N_JOKES:
        raise InvalidInput(f"{path}: {name} has {ratings.shape[1]} jokes; accepted: {N_JOKES}")
    wrong = (ratings != NOT_RATED).sum(axis=1) != counted
    if wrong.any():
        raise InvalidInput(f"{path}: {name} is damaged: row {np.flatnonzero(wrong)[0] + 1} has more or fewer ratings than it says")
    return ratings


def _excel_reader() -> Any:
    try:
        import xlrd  # type: ignore[import-untyped] # an extra: only this source needs it
    except ImportError as error:
        raise InvalidInput(f"Jester 1 comes as an old Excel file; to read it, install xlrd: {install_command('xls')}") from error
    return xlrd
