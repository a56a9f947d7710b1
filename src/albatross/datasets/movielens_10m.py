"""MovieLens 10M: ten million ratings of movies by people who rated at least 20 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from albatross.core.ratings import RatingTable, Scale, tabulated
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive, columns


@dataclass(frozen=True)
class MovieLens10M(DataSet):
    """10,000,054 ratings of 10,677 movies by 69,878 users, half stars from 0.5 to 5, collected 1995 to 2009. Always the whole of it."""

    title: ClassVar[str] = "MovieLens 10M"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/10m/"
    archives: ClassVar[tuple[Archive, ...]] = (
        Archive(
            address="https://files.grouplens.org/datasets/movielens/ml-10m.zip",
            names=("ml-10m.zip",),
            checksum="md5:ce571fd55effeba0271552578f2648bd",
            terms="For research. Acknowledge the use in publications; do not state or imply that the University of Minnesota or GroupLens "
            "endorses you; do not redistribute the data, nor use it commercially, without permission.",
        ),
    )
    citation: ClassVar[str] = "Harper, Konstan: The MovieLens Datasets: History and Context. ACM TiiS 5(4), 2015"
    scale: ClassVar[Scale] = (0.5, 5)

    def read(self, *paths: Path) -> RatingTable:
        types = {"user": "INTEGER", "item": "INTEGER", "rating": "DOUBLE", "time": "BIGINT"}
        found = columns(paths[0], "ratings.dat", types, separator="::")
        return tabulated(found["user"], found["item"], found["rating"], scale=self.scale, source=self.dataset_name())
