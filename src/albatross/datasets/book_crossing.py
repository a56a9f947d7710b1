"""Book-Crossing: ratings of books by readers who pass them on."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from albatross.core.errors import InvalidInput
from albatross.core.parameters import parameter
from albatross.core.ratings import RatingTable, Scale, active_users, restricted, tabulated
from albatross.core.streams import stream
from albatross.datasets import DataSet
from albatross.datasets.archive import Archive, columns


@dataclass(frozen=True)
class BookCrossing(DataSet):
    """433,671 ratings of books, whole numbers from 1 to 10, collected 2004. Rows without an opinion (rating 0) are left out.

    The paper takes 2,000 users and 2,000 books with a density of 0.002 and does not say which. The default is the 2,000 books with the
    most ratings (ties: the smaller ISBN) and 2,000 random users who rated at least 2 of these books: a user with one rating has
    nothing to choose from. Density about 0.003; with `min_ratings=1`, 0.0015. Books are numbered by ISBN, so that a number says nothing
    about how popular a book is.
    """

    n_users: int | None = parameter(2000, "how many users, at random; none: all", at_least=1)
    n_items: int | None = parameter(2000, "how many books, those with the most ratings; none: all", at_least=1)
    min_ratings: int = parameter(2, "users who rated fewer of these books are left out", at_least=1)
    seed: int = parameter(0, "chooses the users", at_least=0)

    title: ClassVar[str] = "Book-Crossing"
    home: ClassVar[str] = "http://www2.informatik.uni-freiburg.de/~cziegler/BX/"
    archives: ClassVar[tuple[Archive, ...]] = (
        Archive(
            address="http://www2.informatik.uni-freiburg.de/~cziegler/BX/BX-CSV-Dump.zip",
            names=("BX-CSV-Dump.zip", "BX-CSV-Dump_explicit_partial.zip"),
            checksum="md5:37d647ee9e18ba134ea6d78ee4fe5292",
            terms="Free for research, when acknowledged by citing the paper on topic diversification.",
        ),
    )
    citation: ClassVar[str] = "Ziegler, McNee, Konstan, Lausen: Improving Recommendation Lists Through Topic Diversification. WWW 2005"
    scale: ClassVar[Scale] = (1, 10)

    def read(self, *paths: Path) -> RatingTable:
        types = {"user": "INTEGER", "item": "VARCHAR", "rating": "DOUBLE"}
        header = '"User-ID";"ISBN";"Book-Rating"'
        found = columns(paths[0], "BX-Book-Ratings.csv", types, separator=";", header=header, escape="\\")
        explicit = found["rating"] != 0
        users, books, ratings = found["user"][explicit], found["item"][explicit].astype(np.str_), found["rating"][explicit]
        table = tabulated(users, books, ratings, scale=self.scale, source=self.dataset_name())
        table = self._of_popular_books(table)
        active = active_users(table, self.min_ratings, self.n_users)
        if self.n_users is not None:
            active = np.sort(stream(self.seed, "users of book-crossing").choice(active, self.n_users, replace=False))
        return restricted(table, users=active)

    def _of_popular_books(self, table: RatingTable) -> RatingTable:
        if self.n_items is None:
            return table
        counts = np.bincount(table.items, minlength=len(table.item_names))
        if counts.size < self.n_items:
            raise InvalidInput(f"{table.source}: n_items is {self.n_items}; accepted: at most {counts.size}, or none for all of them")
        return restricted(table, items=np.sort(np.argsort(-counts, kind="stable")[: self.n_items]))
