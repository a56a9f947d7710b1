"""MovieLens 25M: 25 million ratings of movies by people who rated at least 20 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from albatross.core.ratings import RatingTable, Scale, tabulated
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive, columns


@dataclass(frozen=True)
class MovieLens25M(DataSet):
    """25,000,095 ratings of 62,423 movies, of which some have none, by 162,541 users.

    Half stars from 0.5 to 5, collected 1995 to 2019. Always the whole of it.
    """

    title: ClassVar[str] = "MovieLens 25M"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/25m/"
    archives: ClassVar[tuple[Archive, ...]] = (
        Archive(
            address="https://files.grouplens.org/datasets/movielens/ml-25m.zip",
            names=("ml-25m.zip",),
            checksum="md5:6b51fb2759a8657d3bfcbfc42b592ada",
            terms="For research. Acknowledge the use in publications; do not state or imply that the University of Minnesota or GroupLens "
            "endorses you; do not redistribute the data, nor use it commercially, without permission.",
        ),
    )
    citation: ClassVar[str] = "Harper, Konstan: The MovieLens Datasets: History and Context. ACM TiiS 5(4), 2015"
    scale: ClassVar[Scale] = (0.5, 5)

    def read(self, *paths: Path) -> RatingTable:
        types = {"user": "INTEGER", "item": "INTEGER", "rating": "DOUBLE", "time": "BIGINT"}
        found = columns(paths[0], "ratings.csv", types, separator=",", header="userId,movieId,rating,timestamp")
        return tabulated(found["user"], found["item"], found["rating"], scale=self.scale, source=self.dataset_name())
