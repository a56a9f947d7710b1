"""MovieLens 1M: a million ratings of movies by people who rated at least 20 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from albatross.core.ratings import RatingTable, Scale, tabulated
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive, columns


@dataclass(frozen=True)
class MovieLens1M(DataSet):
    """1,000,209 ratings of 3,706 movies by 6,040 users who joined in 2000, whole stars from 1 to 5. Always the whole of it."""

    title: ClassVar[str] = "MovieLens 1M"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/1m/"
    archives: ClassVar[tuple[Archive, ...]] = (
        Archive(
            address="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
            names=("ml-1m.zip", "ml-1m_no-timestamps.zip"),
            checksum="md5:c4d9eecfca2ab87c1945afe126590906",
            terms="For research. Acknowledge the use in publications; do not state or imply that the University of Minnesota or GroupLens "
            "endorses you; do not redistribute the data, nor use it commercially, without permission.",
        ),
    )
    citation: ClassVar[str] = "Harper, Konstan: The MovieLens Datasets: History and Context. ACM TiiS 5(4), 2015"
    scale: ClassVar[Scale] = (1, 5)

    def read(self, *paths: Path) -> RatingTable:
        types = {"user": "INTEGER", "item": "INTEGER", "rating": "DOUBLE", "time": "BIGINT"}
        found = columns(paths[0], "ratings.dat", types, separator="::")
        return tabulated(found["user"], found["item"], found["rating"], scale=self.scale, source=self.dataset_name())
