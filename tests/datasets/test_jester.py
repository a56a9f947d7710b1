"""The two data sets of Jester, tiny and real."""

import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from albatross.core.ratings import RatingTable
from albatross.datasets import DataSet
from albatross.datasets.jester_1 import Jester1
from albatross.datasets.jester_2 import Jester2

Zipped = Callable[..., Path]

Refused = Callable[[DataSet], str]

RATINGS = {2: {5: 0.219, 7: -9.281, 150: 10.0}, 3: {8: -10.0}, 10: {5: 1.5, 8: 2.0}}
"""By user and joke."""


def dat(ratings: dict[int, dict[int, float]]) -> str:
    return "".join(f"{user}\t\t{joke}\t\t{rating}\n" for user, given in ratings.items() for joke, rating in given.items())


def write_2(zipped: Zipped, ratings: dict[int, dict[int, float]] = RATINGS) -> None:
    zipped("jester_dataset_2.zip", {"jester_items.dat": "1:\n<p>Résumé</p>", "jester_ratings.dat": dat(ratings)})


def users(table: RatingTable) -> list[str]:
    return [table.user_names.name(number) for number in range(len(table.user_names))]


def test_jester_2_whole(zipped: Zipped) -> None:
    write_2(zipped)
    table = Jester2(n_users=None, min_ratings=1).load()
    assert table.users.tolist() == [0, 0, 0, 1, 2, 2]
    assert table.items.tolist() == [4, 6, 149, 7, 4, 7]
    assert table.ratings.tolist() == [0.219, -9.281, 10.0, -10.0, 1.5, 2.0]
    assert table.item_names.name(149) == "150"
    assert table.describe() == (3, 150, 6, 6 / 450, (-10, 10))


def test_jester_2_takes_the_first_users_by_id_among_the_active_ones(zipped: Zipped) -> None:
    write_2(zipped, dict(reversed(RATINGS.items())))
    assert users(Jester2(n_users=2, min_ratings=1).load()) == ["2", "3"]
    active = Jester2(n_users=2, min_ratings=2).load()
    assert users(active) == ["2", "10"]
    assert active.users.tolist() == [1, 1, 0, 0, 0]
    assert active.ratings.tolist() == [1.5, 2.0, 0.219, -9.281, 10.0]
    assert users(Jester2(n_users=None, min_ratings=3).load()) == ["2"]


def test_jester_2_refuses_more_users_than_there_are(zipped: Zipped, refused: Refused) -> None:
    write_2(zipped)
    assert "n_users is 5000, but 0 users have at least 20 ratings" in refused(Jester2())
    assert "accepted: at most 2, or none" in refused(Jester2(n_users=3, min_ratings=2))


@pytest.mark.parametrize(
    ("ratings", "complaint"),
    [({1: {151: 1.0}}, "item 151 is rated"), ({1: {0: 1.0}}, "item 0 is rated"), ({1: {1: 10.5}}, "a rating is 10.5")],
)
def test_jester_2_refuses_what_cannot_be(zipped: Zipped, refused: Refused, ratings: dict[int, dict[int, float]], complaint: str) -> None:
    write_2(zipped, ratings)
    assert complaint in refused(Jester2(n_users=None, min_ratings=1))


def excel(rows: list[list[float]]) -> bytes:
    """A sheet of numbers as the first Excel wrote it, which the reader of later ones still reads."""

    def record(kind: int, content: bytes) -> bytes:
        return struct.pack("<HH", kind, len(content)) + content

    cells = (record(3, struct.pack("<HH3xd", row, column, value)) for row, values in enumerate(rows) for column, value in enumerate(values))
    return record(9, struct.pack("<HH", 2, 0x10)) + b"".join(cells) + record(10, b"")


def row(given: dict[int, float], counted: int | None = None) -> list[float]:
    return [len(given) if counted is None else counted, *(given.get(joke, 99) for joke in range(1, 101))]


PARTS = [[{5: 0.5, 7: -9.25, 100: 10.0}, {8: -10.0}], [{1: 2.0, 2: 3.0}], [{3: 4.0}]]


def write_1(zipped: Zipped, part: int) -> None:
    zipped(f"jester_dataset_1_{part}.zip", {f"jester-data-{part}.xls": excel([row(given) for given in PARTS[part - 1]])})


def test_jester_1_leaves_out_what_was_not_rated(zipped: Zipped) -> None:
    write_1(zipped, 1)
    table = Jester1().load()
    assert table.users.tolist() == [0, 0, 0, 1]
    assert table.items.tolist() == [4, 6, 99, 7]
    assert table.ratings.tolist() == [0.5, -9.25, 10.0, -10.0]
    assert (users(table), table.item_names.name(99)) == (["1", "2"], "100")
    assert table.describe() == (2, 100, 4, 4 / 200, (-10, 10))


def test_jester_1_reads_as_many_parts_as_are_asked_for(zipped: Zipped, refused: Refused) -> None:
    write_1(zipped, 1)
    assert users(Jester1(parts=None).load()) == ["1", "2"]
    assert "jester_dataset_1_2.zip is not here" in refused(Jester1(parts=2))
    write_1(zipped, 2)
    write_1(zipped, 3)
    assert users(Jester1().load()) == ["1", "2"]
    assert users(Jester1(parts=2).load()) == ["1", "2", "3"]
    assert users(Jester1(parts=None).load()) == ["1", "2", "3", "4"]
    chosen = Jester1(parts=3, n_users=2, min_ratings=2).load()
    assert users(chosen) == ["1", "3"]
    assert chosen.ratings.tolist() == [0.5, -9.25, 10.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (excel([row({1: 1.0}), row({1: 1.0, 2: 2.0}, counted=3)]), "row 2 has more or fewer ratings than it says"),
        (excel([[1, 5.0, 99]]), "has 2 jokes"),
        (excel([]), "is damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and then nothing", "is damaged"),
        (b"<html>", "is damaged"),
    ],
    ids=["miscounted", "another width", "no rows", "cut off", "not a sheet"],
)
def test_jester_1_refuses_a_damaged_sheet(zipped: Zipped, refused: Refused, content: bytes, complaint: str) -> None:
    path = zipped("jester_dataset_1_1.zip", {"jester-data-1.xls": content})
    message = refused(Jester1())
    assert complaint in message
    assert f"{path}: jester-data-1.xls" in message


def test_jester_1_says_what_it_needs(zipped: Zipped, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    write_1(zipped, 1)
    monkeypatch.setitem(sys.modules, "xlrd", None)
    message = refused(Jester1())
    assert "install xlrd" in message
    assert "damaged" not in message


def test_the_real_jester_1(real: Callable[..., RatingTable]) -> None:
    table = real("jester-1", "jester_dataset_1_1.zip")
    assert table.describe() == (24_983, 100, 1_810_455, 1_810_455 / 2_498_300, (-10, 10))


@pytest.mark.parametrize(
    ("n_users", "min_ratings", "size", "density"),
    [(5000, 20, 277_261, 0.3697), (5000, 21, 284_269, 0.3790), (5000, 1, 177_241, 0.2363), (None, 1, 385_494, 0.1951)],
)
def test_the_real_jester_2(real: Callable[..., RatingTable], n_users: int | None, min_ratings: int, size: int, density: float) -> None:
    table = real("jester-2", "jester_dataset_2_partial.zip", n_users=n_users, min_ratings=min_ratings)
    summary = table.describe()
    assert (summary.users, summary.items, summary.ratings) == (n_users or 13_173, 150, size)
    assert summary.density == pytest.approx(density, abs=5e-5)
    assert len(set(table.items.tolist())) == 140
