"""MovieLens 10M: ten million ratings of movies by people who rated at least 20 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from albatross.core.ratings import RatingTable, Scale
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive
from albatross.datasets.grouplens import CITATION, archive_of, read_ratings


@dataclass(frozen=True)
class MovieLens10M(DataSet):
    """10,000,054 ratings of 10,677 movies by 69,878 users, half stars from 0.5 to 5, collected 1995 to 2009. Always the whole of it."""

    title: ClassVar[str] = "MovieLens 10M"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/10m/"
    archives: ClassVar[tuple[Archive, ...]] = (archive_of("ml-10m.zip", "md5:ce571fd55effeba0271552578f2648bd"),)
    citation: ClassVar[str] = CITATION
    scale: ClassVar[Scale] = (0.5, 5)

    def read(self, *paths: Path) -> RatingTable:
        return read_ratings(paths[0], "ratings.dat", "::", self.scale, self.dataset_name())
