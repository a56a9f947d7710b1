"""The MovieLens archives, tiny and real."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from albatross.core.ratings import RatingTable
from albatross.datasets import DataSet
from albatross.datasets.movielens_1m import MovieLens1M
from albatross.datasets.movielens_10m import MovieLens10M
from albatross.datasets.movielens_25m import MovieLens25M
from albatross.datasets.movielens_32m import MovieLens32M
from albatross.datasets.movielens_100k import MovieLens100K

Zipped = Callable[..., Path]

ROWS = [(10, 242, 3), (9, 302, 5), (10, 5, 1), (186, 302, 4)]


def small(separator: str, newline: str, rows: list[tuple[int, int, int]] = ROWS) -> str:
    return "".join(separator.join(map(str, (*row, 881250949))) + newline for row in rows)


@pytest.fixture(params=["100k", "1m"])
def loaded(request: pytest.FixtureRequest, zipped: Zipped) -> Callable[..., RatingTable]:
    def load(newline: str = "\n", rows: list[tuple[int, int, int]] = ROWS) -> RatingTable:
        if request.param == "100k":
            zipped("ml-100k.zip", {"ml-100k/u.item": "1|Misérables, Les", "ml-100k/u.data": small("\t", newline, rows)})
            return MovieLens100K().load()
        zipped("ml-1m_no-timestamps.zip", {"ml-1m/movies.dat": "1::Misérables, Les", "ml-1m/ratings.dat": small("::", newline, rows)})
        return MovieLens1M().load()

    return load


def test_10m_has_half_stars(zipped: Zipped) -> None:
    lines = ["1::122::5::838985046", "1::185::4.5::838983525", "71567::122::0.5::912580553"]
    movies = "122::Boomerang (1992)::Comedy|Romance"
    zipped("ml-10m.zip", {"ml-10M100K/movies.dat": movies, "ml-10M100K/ratings.dat": "\n".join(lines) + "\n"})
    table = MovieLens10M().load()
    assert (table.users.tolist(), table.items.tolist(), table.ratings.tolist()) == ([0, 0, 1], [0, 1, 0], [5.0, 4.5, 0.5])
    assert table.describe() == (2, 2, 3, 0.75, (0.5, 5))
    assert table.source == "movielens-10m"


@pytest.mark.parametrize(("size", "dataset"), [("25m", MovieLens25M()), ("32m", MovieLens32M())])
class TestWithHeader:
    """The later ones are tables with a header and half stars."""

    HEADER = "userId,movieId,rating,timestamp"

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_rows_below_the_header_are_read(self, zipped: Zipped, size: str, dataset: DataSet, newline: str) -> None:
        lines = [self.HEADER, "1,296,5.0,1147880044", "1,306,3.5,1147868817", "2,296,0.5,1141415820"]
        movies = 'movieId,title,genres\n296,"Pulp, Fiction",Crime\n'
        zipped(f"ml-{size}.zip", {f"ml-{size}/movies.csv": movies, f"ml-{size}/ratings.csv": newline.join(lines) + newline})
        table = dataset.load()
        assert (table.users.tolist(), table.items.tolist(), table.ratings.tolist()) == ([0, 0, 1], [0, 1, 0], [5.0, 3.5, 0.5])
        assert table.user_names.name(1) == "2"
        assert table.item_names.name(1) == "306"
        assert table.source == f"movielens-{size}"

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("1,296,5.0,1147880044\n", "does not begin with userId"),
            (f"{HEADER}\n1,296,5.5,1147880044\n", "a rating is 5.5; accepted: ratings from 0.5 to 5"),
            (f"{HEADER}\n1,296,,1147880044\n", "no rating in line 2"),
            (f"{HEADER}\n1,296\n", "is damaged"),
        ],
    )
    def test_other_content_is_refused(self, zipped: Zipped, size: str, dataset: DataSet, content: str, message: str) -> None:
        zipped(f"ml-{size}.zip", {f"ml-{size}/ratings.csv": content})
        with pytest.raises(ValueError, match=message):
            dataset.load()

    def test_an_archive_without_ratings_is_refused(self, zipped: Zipped, size: str, dataset: DataSet) -> None:
        zipped(f"ml-{size}.zip", {f"ml-{size}/movies.csv": "movieId,title,genres\n"})
        with pytest.raises(ValueError, match=r"zip does not contain ratings\.csv; accepted"):
            dataset.load()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_rows_stay_in_order_and_numbers_follow_the_ids(loaded: Callable[..., RatingTable], newline: str) -> None:
    table = loaded(newline)
    assert table.users.tolist() == [1, 0, 1, 2]
    assert table.items.tolist() == [1, 2, 0, 2]
    assert table.ratings.tolist() == [3.0, 5.0, 1.0, 4.0]
    assert [table.user_names.name(user) for user in range(3)] == ["9", "10", "186"]
    assert [table.item_names.name(item) for item in range(3)] == ["5", "242", "302"]
    assert [array.dtype.name for array in table[:3]] == ["int32", "int32", "float64"]
    assert table.source.startswith("movielens-1")
    assert table.describe() == (3, 3, 4, 4 / 9, (1, 5))


def test_of_two_ratings_of_one_pair_the_last_counts(loaded: Callable[..., RatingTable]) -> None:
    table = loaded(rows=[(1, 1, 2), (3, 1, 4), (1, 1, 5), (2, 1, 3), (1, 2, 1)])
    assert (table.users.tolist(), table.ratings.tolist()) == ([2, 0, 1, 0], [4.0, 5.0, 3.0, 1.0])


@pytest.mark.parametrize("rating", [0, 6])
def test_a_rating_beyond_the_scale_is_refused(loaded: Callable[..., RatingTable], rating: int) -> None:
    with pytest.raises(ValueError, match=rf"ml-1.*\.zip: a rating is {rating}; accepted: ratings from 1 to 5"):
        loaded(rows=[(1, 1, 5), (1, 2, rating)])


def test_an_empty_file_is_refused(loaded: Callable[..., RatingTable]) -> None:
    with pytest.raises(ValueError, match="there is no rating"):
        loaded(rows=[])


def test_the_real_100k(real: Callable[..., RatingTable]) -> None:
    table = real("movielens-100k", "ml-100k.zip")
    assert table.describe() == (943, 1682, 100_000, 100_000 / (943 * 1682), (1, 5))
    assert np.bincount(table.ratings.astype(int)).tolist() == [0, 6110, 11370, 27145, 34174, 21201]
    assert np.bincount(table.users).min() == 20


def test_the_real_1m(real: Callable[..., RatingTable]) -> None:
    table = real("movielens-1m", "ml-1m_no-timestamps.zip")
    assert table.describe() == (6040, 3706, 1_000_209, 1_000_209 / (6040 * 3706), (1, 5))
    assert np.bincount(table.ratings.astype(int)).tolist() == [0, 56174, 107557, 261197, 348971, 226310]
    assert table.item_names.name(3705) == "3952"
