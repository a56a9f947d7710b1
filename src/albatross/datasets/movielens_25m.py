"""MovieLens 25M: 25 million ratings of movies by people who rated at least 20 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from albatross.core.ratings import RatingTable, Scale
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive
from albatross.datasets.grouplens import CITATION, archive_of, read_ratings


@dataclass(frozen=True)
class MovieLens25M(DataSet):
    """25,000,095 ratings of 62,423 movies, of which some have none, by 162,541 users.

    Half stars from 0.5 to 5, collected 1995 to 2019. Always the whole of it.
    """

    title: ClassVar[str] = "MovieLens 25M"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/25m/"
    archives: ClassVar[tuple[Archive, ...]] = (archive_of("ml-25m.zip", "md5:6b51fb2759a8657d3bfcbfc42b592ada"),)
    citation: ClassVar[str] = CITATION
    scale: ClassVar[Scale] = (0.5, 5)

    def read(self, *paths: Path) -> RatingTable:
        return read_ratings(paths[0], "ratings.csv", ",", self.scale, self.dataset_name(), header="userId,movieId,rating,timestamp")
