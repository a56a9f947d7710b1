"""MovieLens 1M: a million ratings of movies by people who rated at least 20 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from albatross.core.ratings import RatingTable, Scale
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive
from albatross.datasets.grouplens import CITATION, archive_of, read_ratings


@dataclass(frozen=True)
class MovieLens1M(DataSet):
    """1,000,209 ratings of 3,706 movies by 6,040 users who joined in 2000, whole stars from 1 to 5. Always the whole of it."""

    title: ClassVar[str] = "MovieLens 1M"
    home: ClassVar[str] = "https://grouplens.org/datasets/movielens/1m/"
    archives: ClassVar[tuple[Archive, ...]] = (archive_of("ml-1m.zip", "md5:c4d9eecfca2ab87c1945afe126590906", "ml-1m_no-timestamps.zip"),)
    citation: ClassVar[str] = CITATION
    scale: ClassVar[Scale] = (1, 5)

    def read(self, *paths: Path) -> RatingTable:
        return read_ratings(paths[0], "ratings.dat", "::", self.scale, self.dataset_name())
