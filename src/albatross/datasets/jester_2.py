"""Jester, dataset 2: ratings of 150 jokes, as real numbers."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from albatross.core.parameters import parameter
from albatross.core.ratings import RatingTable, Scale, active_users, restricted, tabulated
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive, columns

N_JOKES = 150


@dataclass(frozen=True)
class Jester2(DataSet):
    """About 1.76 million ratings of 150 jokes, real numbers from -10 to 10, collected 2006 to 2009.

    The paper takes 5,000 users with a density of 0.373 and does not say which. The default is the first 5,000, in the order of
    their ids, that gave at least 20 ratings: density 0.370. `min_ratings=1` takes the plain first 5,000: density 0.236.
    The ten jokes that nobody rated count as items: the paper speaks of 150.
    """

    n_users: int | None = parameter(5000, "how many users, the first ones by id; none: all", at_least=1)
    min_ratings: int = parameter(20, "users with fewer ratings are left out", at_least=1)

    title: ClassVar[str] = "Jester 2"
    home: ClassVar[str] = "https://eigentaste.berkeley.edu/dataset/"
    archives: ClassVar[tuple[Archive, ...]] = (
        Archive(
            address="https://eigentaste.berkeley.edu/dataset/archive/jester_dataset_2.zip",
            names=("jester_dataset_2.zip", "jester_dataset_2_partial.zip"),
            checksum="sha256:5c2b9fb8346fc132ac1be6a9264fef9a6d153da68f3201839ac25c19f9a59a09",
            terms="Free for research, when acknowledged by citing the Eigentaste paper.",
        ),
    )
    citation: ClassVar[str] = (
        "Goldberg, Roeder, Gupta, Perkins: Eigentaste: A Constant Time Collaborative Filtering Algorithm. Information Retrieval 4(2), 2001"
    )
    scale: ClassVar[Scale] = (-10, 10)

    def read(self, *paths: Path) -> RatingTable:
        types = {"user": "INTEGER", "item": "INTEGER", "rating": "DOUBLE"}
        found = columns(paths[0], "jester_ratings.dat", types, separator="\t\t")
        jokes = np.arange(1, N_JOKES + 1)
        table = tabulated(found["user"], found["item"], found["rating"], scale=self.scale, source=self.dataset_name(), catalogue=jokes)
        return restricted(table, users=active_users(table, self.min_ratings, self.n_users)[: self.n_users])
