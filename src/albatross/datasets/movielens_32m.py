"""MovieLens 32M: 32 million ratings of movies by people who rated at least 20 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from albatross.core.ratings import RatingTable, Scale
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive
from albatross.datasets.grouplens import CITATION, archive_of, read_ratings


@dataclass(frozen=True)
class MovieLens32M(DataSet):
    """32,000,204 ratings of 87,585 movies, of which some have none, by 200,948 users.

    Half stars from 0.5 to 5, collected 1995 to 2023. Always the whole of it.
    """

    title: ClassVar[str] = "MovieLens 32M"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/32m/"
    archives: ClassVar[tuple[Archive, ...]] = (archive_of("ml-32m.zip", "md5:d472be332d4daa821edc399621853b57"),)
    citation: ClassVar[str] = CITATION
    scale: ClassVar[Scale] = (0.5, 5)

    def read(self, *paths: Path) -> RatingTable:
        return read_ratings(paths[0], "ratings.csv", ",", self.scale, self.dataset_name(), header="userId,movieId,rating,timestamp")
