"""Book-Crossing, tiny and real."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from albatross.core.ratings import RatingTable
from albatross.datasets import DataSet
from albatross.datasets.book_crossing import BookCrossing

Zipped = Callable[..., Path]

HEADER = '"User-ID";"ISBN";"Book-Rating"\r\n'

EVERYTHING = BookCrossing(n_users=None, n_items=None, min_ratings=1)


def write(zipped: Zipped, *rows: tuple[int, str, int]) -> None:
    lines = (f'"{user}";"{isbn}";"{rating}"\r\n' for user, isbn, rating in rows)
    zipped("BX-CSV-Dump.zip", {"BX-Books.csv": '"ISBN"\r\n', "BX-Book-Ratings.csv": HEADER + "".join(lines)})


def rated(table: RatingTable) -> set[tuple[str, str, float]]:
    rows = zip(table.users.tolist(), table.items.tolist(), table.ratings.tolist(), strict=True)
    return {(table.user_names.name(user), table.item_names.name(item), rating) for user, item, rating in rows}


def test_rows_without_an_opinion_are_left_out(zipped: Zipped) -> None:
    write(zipped, (276725, "034545104X", 0), (276726, "0155061224", 5), (9, "034545104X", 10))
    table = EVERYTHING.load()
    assert rated(table) == {("276726", "0155061224", 5.0), ("9", "034545104X", 10.0)}
    assert table.users.tolist() == [1, 0]
    assert table.items.tolist() == [0, 1]
    assert table.describe() == (2, 2, 2, 0.5, (1, 10))


@pytest.mark.parametrize(
    ("written", "isbn"),
    [
        ("0006;7", "0006;7"),
        (r"0 330 \"299891\"", '0 330 "299891"'),
        (r"a\\", "a\\"),
        ("8475560806º", "8475560806º"),
        ("\x80\x9f\xff", "\x80\x9f\xff"),
        ("", ""),
        ("NULL", "NULL"),
    ],
)
def test_isbns_are_any_text(zipped: Zipped, written: str, isbn: str) -> None:
    write(zipped, (1, "0155061224", 5), (1, written, 7), (2, "0155061224", 6))
    assert rated(EVERYTHING.load()) == {("1", "0155061224", 5.0), ("1", isbn, 7.0), ("2", "0155061224", 6.0)}


def test_the_most_rated_books_are_kept_ties_by_isbn(zipped: Zipped) -> None:
    write(zipped, (1, "d", 1), (2, "d", 2), (1, "c", 3), (3, "b", 4), (3, "a", 0), (2, "a", 0))
    table = BookCrossing(n_users=None, n_items=2, min_ratings=1).load()
    assert rated(table) == {("1", "d", 1.0), ("2", "d", 2.0), ("3", "b", 4.0)}
    assert [table.item_names.name(item) for item in range(2)] == ["b", "d"]


def test_ratings_are_counted_among_the_books_that_are_kept(zipped: Zipped) -> None:
    write(zipped, (1, "d", 1), (2, "d", 2), (1, "c", 3), (2, "b", 4), (3, "c", 5), (3, "d", 6))
    table = BookCrossing(n_users=None, n_items=2, min_ratings=2).load()
    assert rated(table) == {("1", "d", 1.0), ("1", "c", 3.0), ("3", "d", 6.0), ("3", "c", 5.0)}


def test_users_are_drawn_by_the_seed_whatever_the_order_of_the_rows(zipped: Zipped) -> None:
    rows = [(user, isbn, 1 + user % 10) for user in range(1, 41) for isbn in ("a", "b")]

    def drawn(seed: int) -> RatingTable:
        return BookCrossing(n_users=20, n_items=2, seed=seed).load()

    write(zipped, *rows)
    first, other = rated(drawn(0)), rated(drawn(1))
    assert len(first) == len(other) == 40
    assert first != other
    write(zipped, *reversed(rows))
    assert rated(drawn(0)) == first
    names = drawn(0).user_names
    ids = [int(names.name(user)) for user in range(20)]
    assert ids == sorted(ids)


def test_more_than_there_is_is_refused(zipped: Zipped, refused: Callable[[DataSet], str]) -> None:
    write(zipped, (1, "a", 5), (1, "b", 5), (2, "a", 5))
    assert "n_items is 2000; accepted: at most 2" in refused(BookCrossing())
    assert "n_users is 2, but 1 users have at least 2 ratings" in refused(BookCrossing(n_users=2, n_items=2))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('"1";"a";"5"\r\n', "does not begin with"),
        (HEADER + '"1";"a";"5"\r\n"1";"b', "Line: 3"),
        (HEADER + '"1";"a";"5"\r\n"1";"b";"five"\r\n', "Line: 3"),
        (HEADER + '"1";"a";"11"\r\n', "a rating is 11"),
        (HEADER, "there is no rating"),
    ],
    ids=["no header", "cut off", "not a number", "beyond the scale", "empty"],
)
def test_a_damaged_file_is_refused(zipped: Zipped, refused: Callable[[DataSet], str], content: str, complaint: str) -> None:
    path = zipped("BX-CSV-Dump.zip", {"BX-Book-Ratings.csv": content})
    message = refused(EVERYTHING)
    assert complaint in message
    assert str(path) in message


def test_the_real_book_crossing(real: Callable[..., RatingTable]) -> None:
    table = real("book-crossing", "BX-CSV-Dump_explicit_partial.zip")
    assert table.describe() == (2000, 2000, 12_170, 12_170 / 4_000_000, (1, 10))
    assert np.bincount(table.users).min() == 2


@pytest.mark.parametrize(("n_users", "n_items", "users", "size"), [(None, None, 58_578, 335_419), (None, 2000, 30_817, 93_560)])
def test_the_real_book_crossing_whole(
    real: Callable[..., RatingTable], n_users: int | None, n_items: int | None, users: int, size: int
) -> None:
    table = real("book-crossing", "BX-CSV-Dump_explicit_partial.zip", n_users=n_users, n_items=n_items, min_ratings=1)
    assert (len(table.user_names), len(table.item_names), table.ratings.size) == (users, n_items or 114_875, size)
