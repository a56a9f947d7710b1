"""MovieLens 100K: 100,000 ratings of movies by people who rated at least 20 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from albatross.core.ratings import RatingTable, Scale, tabulated
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive, columns


@dataclass(frozen=True)
class MovieLens100K(DataSet):
    """100,000 ratings of 1,682 movies by 943 users, whole stars from 1 to 5, collected 1997 to 1998.

    Always the whole of it. The paper rounds its size to 1,000 users and 1,700 movies, and its density accordingly to 0.058.
    """

    title: ClassVar[str] = "MovieLens 100K"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/100k/"
    archives: ClassVar[tuple[Archive, ...]] = (
        Archive(
            address="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            names=("ml-100k.zip",),
            checksum="md5:0e33842e24a9c977be4e0107933c0723",
            terms="For research. Acknowledge the use in publications; do not state or imply that the University of Minnesota or GroupLens "
            "endorses you; do not redistribute the data, nor use it commercially, without permission.",
        ),
    )
    citation: ClassVar[str] = "Harper, Konstan: The MovieLens Datasets: History and Context. ACM TiiS 5(4), 2015"
    scale: ClassVar[Scale] = (1, 5)

    def read(self, *paths: Path) -> RatingTable:
        types = {"user": "INTEGER", "item": "INTEGER", "rating": "DOUBLE", "time": "BIGINT"}
        found = columns(paths[0], "u.data", types, separator="\t")
        return tabulated(found["user"], found["item"], found["rating"], scale=self.scale, source=self.dataset_name())
