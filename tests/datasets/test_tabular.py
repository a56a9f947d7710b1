"""Any CSV or Parquet file as ratings, and the errors for those that cannot be read."""

import csv
import gzip
import re
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from albatross.core.errors import InvalidInput
from albatross.core.ratings import RatingTable
from albatross.datasets.tabular import read_table

Row = tuple[str, str, float]


def rows_of(table: RatingTable) -> list[Row]:
    return [
        (table.user_names.name(user), table.item_names.name(item), rating)
        for user, item, rating in zip(table.users.tolist(), table.items.tolist(), table.ratings.tolist(), strict=True)
    ]


def written(folder: Path, content: str | bytes, name: str = "ratings.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


PLAIN = "user,item,rating\nann,heat,4\nbob,heat,2.5\nann,alien,-1e1\n"
EXPECTED = [("ann", "heat", 4.0), ("bob", "heat", 2.5), ("ann", "alien", -10.0)]

SPELLINGS: dict[str, tuple[str, str | bytes]] = {
    "plain": ("r.csv", PLAIN),
    "capital extension": ("R.CSV", PLAIN),
    "byte order mark": ("r.csv", "\ufeff" + PLAIN),
    "carriage returns": ("r.csv", PLAIN.replace("\n", "\r\n")),
    "no last line end": ("r.csv", PLAIN.rstrip()),
    "empty lines": ("r.csv", PLAIN.replace("\nbob", "\n\nbob") + "\n\n"),
    "semicolons": ("r.csv", PLAIN.replace(",", ";")),
    "bars": ("r.csv", PLAIN.replace(",", "|")),
    "tabs in a csv": ("r.csv", PLAIN.replace(",", "\t")),
    "tsv": ("r.tsv", PLAIN.replace(",", "\t")),
    "gzip": ("r.csv.gz", gzip.compress(PLAIN.encode())),
    "gzip tsv": ("r.tsv.gz", gzip.compress(PLAIN.replace(",", "\t").encode())),
    "quoted": ("r.csv", '"user","item","rating"\n"ann","heat","4"\nbob,heat,2.5\nann,"alien",-10\n'),
    "other columns": ("r.csv", "when,item,rating,user\n1,heat,4,ann\n?,heat,2.5,bob\n,alien,-10,ann\n"),
    "delimiters within other columns": (
        "r.csv",
        'user,item,rating,"a;b;c;d"\nann,heat,4,"x;y,z"\nbob,heat,2.5,;;;\nann,alien,-10,""\n',
    ),
    "spaces": ("r.csv", "user, item ,rating\nann,heat, 4\nbob,heat,2.5 \nann,alien,-10\n"),
    "brackets in the name": ("r[1].csv", PLAIN),
}


@pytest.mark.parametrize(("name", "content"), SPELLINGS.values(), ids=SPELLINGS)
def test_the_same_ratings_however_they_are_written(name: str, content: str | bytes, tmp_path: Path) -> None:
    written(tmp_path, "user,item,rating\ndecoy,decoy,0\n", "r1.csv")  # which `r[1].csv` would match, taken for a pattern
    table = read_table(written(tmp_path, content, name))
    assert rows_of(table) == EXPECTED
    assert table.source == name


def test_numbers_follow_the_order_of_the_file(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "user,item,rating\n4,8,1\n30,7,2\n4,7,3\n"))
    assert table.users.tolist() == [0, 1, 0]
    assert table.items.tolist() == [0, 1, 1]
    assert [table.user_names.name(number) for number in range(2)] == ["4", "30"]


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, "userId,movieId,rating,item,stars\na,b,1,x,5\n")
    assert rows_of(read_table(path, "userId", "movieId", "stars")) == [("a", "b", 5.0)]


def test_parquet_with_any_types(tmp_path: Path) -> None:
    path = tmp_path / "ratings.parquet"
    duckdb.sql(f"COPY (SELECT * FROM (VALUES (7, DATE '2020-01-02', 3.5::FLOAT, 1), (5, DATE '2021-01-01', 1, 2)) AS t"
               f'("user""s", item, rating, other)) TO \'{path}\'')  # fmt: skip
    assert rows_of(read_table(path, user_column='user"s')) == [("7", "2020-01-02", 3.5), ("5", "2021-01-01", 1.0)]


def test_rows_stay_in_order_over_many_blocks(tmp_path: Path) -> None:
    n_rows = 300_000
    content = "user,item,rating\n" + "".join(f"u{row % 977},i{row},{row}\n" for row in range(n_rows))
    table = read_table(written(tmp_path, content))
    assert np.array_equal(table.ratings, np.arange(n_rows))
    assert np.array_equal(table.items, np.arange(n_rows))
    assert np.array_equal(table.users, np.arange(n_rows) % 977)


ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8).filter(
    lambda name: name.strip(" ")
)
ratings = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(ids, ids, ratings), min_size=1, max_size=8, unique_by=lambda row: row[:2]),
    delimiter=st.sampled_from(",;\t|"),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_written_is_read(rows: list[Row], delimiter: str, line_end: str, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL)
        writer.writerows([("user", "item", "rating"), *rows])
    assert rows_of(read_table(path)) == rows


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "not a number": ("user,item,rating\na,b,1\nc,d,good\n", r"row 2 \(line 3\): rating is 'good'; accepted: a finite number"),
    "decimal comma": ("user;item;rating\na;b;1,5\n", r"row 1 \(line 2\): rating is '1,5'"),
    "NaN": ("user,item,rating\na,b,nan\n", r"row 1 \(line 2\): rating is 'nan'"),
    "infinite": ("user,item,rating\na,b,-inf\n", r"row 1 \(line 2\): rating is '-inf'"),
    "overflow": ("user,item,rating\na,b,1e999\n", r"row 1 \(line 2\): rating is '1e999'"),
    "no rating": ("user,item,rating\na,b,\n", r"row 1 \(line 2\): rating is missing"),
    "blank rating": ("user,item,rating\na,b,  \n", r"row 1 \(line 2\): rating is missing"),
    "no user": ("user,item,rating\na,b,1\n,b,1\n", r"row 2 \(line 3\): user is missing"),
    "no item": ('user,item,rating\na,"",1\n', r"row 1 \(line 2\): item is missing"),
    "after a field of several lines": ('user,item,rating\n"a\nb\nc",x,1\n\n"d\ne",y,?\n', r"row 2 \(line 6\): rating is '\?'"),
    "a pair twice": (
        "user,item,rating\na,b,1\na,c,1\nb,b,1\na,b,2\na,c,2\n",
        r"row 4 \(line 5\): user 'a' and item 'b' are a pair already rated in row 1; accepted: each pair once",
    ),
    "too few fields": ('user,item,rating\n"a\nb",b,1\nc,d\n', r"row 2 \(line 4\): has 2 fields; accepted: 3"),
    "too many fields": ("user,item,rating\na,b,1\nc,d,1,2\n", r"row 2 \(line 3\): has 4 fields; accepted: 3"),
    "missing columns": ("person,item,stars\na,b,1\n", r"no column 'user' and no column 'rating'; its columns: person, item, stars"),
    "a column twice": ("user,item,rating,rating\na,b,1,2\n", r"2 columns 'rating'; accepted: one"),
    "nothing": ("", r"is empty"),
    "only line ends": ("\n\n", r"is empty"),
    "only a header": ("user,item,rating\n", r"is empty; accepted: at least one rating"),
    "Latin 1": ("user,item,rating\né,b,1\n".encode("latin-1"), r"UTF-8"),
    "Latin 1 header": ("usér,item,rating\na,b,1\n".encode("latin-1"), r"UTF-8"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_with_the_place_and_the_reason(content: str | bytes, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InvalidInput, match=f"^{re.escape(str(path))}.*{message}"):
        read_table(path)


def test_an_open_quote_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"ratings\.csv"):
        read_table(written(tmp_path, 'user,item,rating\na,"b,1\nc,d,1\n'))


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("'a' AS user, 'b' AS item, 'nan'::DOUBLE AS rating", r"row 1: rating is 'nan'"),
        ("'a' AS user, 'b' AS item, NULL::DOUBLE AS rating", r"row 1: rating is missing"),
        ("NULL::INT AS user, 'b' AS item, 1 AS rating", r"row 1: user is missing"),
        ("'a' AS user, 'b' AS item, 1 AS stars", r"no column 'rating'; its columns: user, item, stars"),
        ("'a' AS user, 'b' AS item, 1 AS rating WHERE false", r"is empty"),
    ],
)
def test_refused_parquet(select: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "ratings.parquet"
    duckdb.sql(f"COPY (SELECT {select}) TO '{path}'")
    with pytest.raises(InvalidInput, match=message):
        read_table(path)


def test_not_what_the_name_says(tmp_path: Path) -> None:
    for name in ("ratings.parquet", "ratings.csv.gz"):
        with pytest.raises(InvalidInput, match=f"{name} cannot be read"):
            read_table(written(tmp_path, PLAIN, name))


def test_missing_folder_and_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.csv is missing"):
        read_table(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInput, match="is a folder"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(InvalidInput, match=r"ratings\.xls is not a kind .* accepted: a name ending in \.csv"):
        read_table(written(tmp_path, PLAIN, "ratings.xls"))
