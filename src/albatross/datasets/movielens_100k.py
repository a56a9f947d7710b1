"""MovieLens 100K: 100,000 ratings of movies by people who rated at least 20 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from albatross.core.ratings import RatingTable, Scale
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive
from albatross.datasets.grouplens import CITATION, archive_of, read_ratings


@dataclass(frozen=True)
class MovieLens100K(DataSet):
    """100,000 ratings of 1,682 movies by 943 users, whole stars from 1 to 5, collected 1997 to 1998.

    Always the whole of it. The paper rounds its size to 1,000 users and 1,700 movies, and its density accordingly to 0.058.
    """

    title: ClassVar[str] = "MovieLens 100K"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/100k/"
    archives: ClassVar[tuple[Archive, ...]] = (archive_of("ml-100k.zip", "md5:0e33842e24a9c977be4e0107933c0723"),)
    citation: ClassVar[str] = CITATION
    scale: ClassVar[Scale] = (1, 5)

    def read(self, *paths: Path) -> RatingTable:
        return read_ratings(paths[0], "u.data", "\t", self.scale, self.dataset_name())
