"""Ratings from any CSV or Parquet file."""

import csv
import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.core.ratings import RatingTable
from albatross.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

EXTENSIONS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")

DELIMITERS = ",;\t|"
"""Delimiters of a `.csv` file, tried in this order on its header."""

OPTIONS = ("--user-column", "--item-column", "--rating-column")
"""Command-line options that name the columns; in Python, arguments of the same names."""

UNREADABLE = (OSError, EOFError, UnicodeError, csv.Error, zlib.error)


def read_table(
    path: str | os.PathLike[str], user_column: str = "user", item_column: str = "item", rating_column: str = "rating"
) -> RatingTable:
    """The ratings of a file with a header. Ids may be any text or numbers; columns not named here are ignored.

    Users and items are numbered in the order in which the file first mentions them.
    """
    import duckdb  # slow to import, and needed only to read a file

    file, wanted = Path(path), (user_column, item_column, rating_column)
    if not has_table_extension(file):
        raise InvalidInput(f"{file} is not a kind of file that can be read; accepted: a name ending in {', '.join(EXTENSIONS)}")
    if not file.is_file():
        raise InvalidInput(f"{file} is {'a folder' if file.is_dir() else 'missing'}; accepted: a file of ratings")
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            _load(connection, file, wanted)
        except duckdb.Error as error:
            raise _malformed(file, wanted, str(error)) from error
        _refuse_bad_rows(connection, file, wanted)
        user_names, item_names = _number(connection, "user"), _number(connection, "item")
        columns = connection.execute("""
            SELECT users.number AS users, items.number AS items, value AS ratings
            FROM ratings JOIN users ON users.name = ratings.user JOIN items ON items.name = ratings.item ORDER BY row
        """).fetchnumpy()
    users, items = columns["users"].astype(np.int32), columns["items"].astype(np.int32)
    _refuse_repeated_pairs(file, wanted, users, items, user_names, item_names)
    return RatingTable(users, items, columns["ratings"].astype(np.float64), user_names, item_names, file.name)


def read_rows(
    path: str | os.PathLike[str], user_column: str = "user", item_column: str = "item", rating_column: str = "rating"
) -> Iterator[tuple[int, list[str | None] | None]]:
    """User, item and rating of every row as text, valid or not, with its first line number (for Parquet, the row number).

    None for a row whose number of fields differs from the header.
    """
    import duckdb

    file, wanted = Path(path), (user_column, item_column, rating_column)
    if not has_table_extension(file) or not file.is_file():
        raise InvalidInput(f"{file} is no file that can be read; accepted: a file with a name ending in {', '.join(EXTENSIONS)}")
    if not _is_parquet(file):
        delimiter, header = _header(file, wanted)
        _refuse_missing_columns(file, wanted, header)
        places = [header.index(name) for name in wanted]
        try:
            for number, (line, fields) in enumerate(_records(file, delimiter)):
                if number > 0:
                    yield line, [fields[place] for place in places] if len(fields) == len(header) else None
        except UNREADABLE as error:
            raise _unreadable(file, error) from error
        return
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            _refuse_missing_columns(file, wanted, _parquet_columns(connection, file))
            columns = ", ".join(f'CAST("{name.replace(chr(34), 2 * chr(34))}" AS VARCHAR)' for name in wanted)
            found = connection.execute(f"SELECT {columns} FROM read_parquet(?)", [_pattern(file)])
            number = 0
            while rows := found.fetchmany(10_000):
                for row in rows:
                    number += 1
                    yield number, list(row)
        except duckdb.Error as error:
            raise InvalidInput(f"{file} cannot be read: {str(error).partition(chr(10))[0]}") from error


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a file, in order."""
    import duckdb

    file = Path(path)
    if not has_table_extension(file) or not file.is_file():
        raise InvalidInput(f"{file} is no file that can be read; accepted: a file with a name ending in {', '.join(EXTENSIONS)}")
    if not _is_parquet(file):
        return _header(file, ())[1]
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            return _parquet_columns(connection, file)
        except duckdb.Error as error:
            raise InvalidInput(f"{file} cannot be read: {str(error).partition(chr(10))[0]}") from error


def _parquet_columns(connection: "DuckDBPyConnection", file: Path) -> list[str]:
    described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [_pattern(file)]).fetchall()
    return [str(column[0]) for column in described]


def _pattern(file: Path) -> str:
    """DuckDB treats a path as a pattern: brackets around a special character mean the character itself."""
    return re.sub(r"([*?\[])", r"[\1]", str(file))


def has_table_extension(path: str | os.PathLike[str]) -> bool:
    return Path(path).name.lower().endswith(EXTENSIONS)


def _load(connection: "DuckDBPyConnection", file: Path, wanted: Sequence[str]) -> None:
    """Fill the table `ratings`: row from 1, user, item, rating as text, value as a number or null."""
    if _is_parquet(file):
        _refuse_missing_columns(file, wanted, _parquet_columns(connection, file))
        user, item, rating = (f'"{name.replace(chr(34), 2 * chr(34))}"' for name in wanted)
        source = "read_parquet(?)"
    else:
        delimiter, header = _header(file, wanted)
        _refuse_missing_columns(file, wanted, header)
        user, item, rating = (f"field{header.index(name)}" for name in wanted)
        fields = ", ".join(f"field{number}: 'VARCHAR'" for number in range(len(header)))
        compression = "gzip" if file.name.lower().endswith(".gz") else "none"
        # Nothing is guessed: the header determines the whole file.
        source = f"""read_csv(?, auto_detect = false, header = true, delim = '{delimiter}', quote = '"', escape = '"',
                              compression = '{compression}', columns = {{{fields}}})"""
    connection.execute(
        f"""CREATE TEMP TABLE ratings AS SELECT row_number() OVER () AS row, CAST({user} AS VARCHAR) AS user,
            CAST({item} AS VARCHAR) AS item, CAST({rating} AS VARCHAR) AS rating, TRY_CAST({rating} AS DOUBLE) AS value FROM {source}""",
        [_pattern(file)],
    )


def _number(connection: "DuckDBPyConnection", kind: str) -> Vocabulary:
    """Fill the table `users` or `items`: name and number, in the order of first mention."""
    connection.execute(f"""
        CREATE TEMP TABLE {kind}s AS
        SELECT {kind} AS name, row_number() OVER (ORDER BY min(row)) - 1 AS number FROM ratings GROUP BY {kind}
    """)
    return Vocabulary(name for (name,) in connection.execute(f"SELECT name FROM {kind}s ORDER BY number").fetchall())


def _refuse_missing_columns(file: Path, wanted: Sequence[str], present: Sequence[str]) -> None:
    missing = {name: option for name, option in zip(wanted, OPTIONS, strict=True) if name not in present}
    if missing:
        lacks, options = " and no column ".join(map(repr, missing)), " and ".join(missing.values())
        raise InvalidInput(f"{file} has no column {lacks}; its columns: {', '.join(present)}; say which to use with {options}")
    for name in wanted:
        if present.count(name) > 1:
            raise InvalidInput(f"{file} has {present.count(name)} columns {name!r}; accepted: one")


def _refuse_bad_rows(connection: "DuckDBPyConnection", file: Path, wanted: Sequence[str]) -> None:
    if connection.execute("SELECT count(*) FROM ratings").fetchone() == (0,):
        raise InvalidInput(f"{file} is empty; accepted: at least one rating below the header")
    bad = connection.execute("""
        SELECT row, user, item, rating, value FROM ratings
        WHERE coalesce(trim(user, ' '), '') = '' OR coalesce(trim(item, ' '), '') = '' OR value IS NULL OR NOT isfinite(value)
        ORDER BY row LIMIT 1
    """).fetchone()
    if bad is None:
        return
    row, user, item, rating, _ = bad
    for column, name in zip(wanted, (user, item), strict=False):
        if not (name or "").strip(" "):
            raise InvalidInput(f"{_place(file, wanted, row)}: {column} is missing; accepted: any text or number")
    given = "missing" if not (rating or "").strip(" ") else repr(rating)
    raise InvalidInput(f"{_place(file, wanted, row)}: {wanted[2]} is {given}; accepted: a finite number")


def _refuse_repeated_pairs(
    file: Path, wanted: Sequence[str], users: NDArray[np.int32], items: NDArray[np.int32], user_names: Vocabulary, item_names: Vocabulary
) -> None:
    pairs = users.astype(np.int64) * len(item_names) + items
    order = np.argsort(pairs, kind="stable")
    repeats = order[1:][pairs[order][1:] == pairs[order][:-1]]
    if repeats.size == 0:
        return
    again = int(repeats.min())
    first = int(np.flatnonzero(pairs == pairs[again])[0])
    who = f"{wanted[0]} {user_names.name(users[again])!r} and {wanted[1]} {item_names.name(items[again])!r}"
    raise InvalidInput(f"{_place(file, wanted, again + 1)}: {who} are a pair already rated in row {first + 1}; accepted: each pair once")


def _malformed(file: Path, wanted: Sequence[str], complaint: str) -> InvalidInput:
    """The error for a malformed file: our own message if the bad row is found, else DuckDB's."""
    if not _is_parquet(file):
        delimiter, header = _header(file, wanted)
        try:
            for row, (_, fields) in enumerate(_records(file, delimiter)):
                if len(fields) != len(header):
                    place = _place(file, wanted, row)
                    return InvalidInput(f"{place}: has {len(fields)} fields; accepted: {len(header)}, as in the header")
        except UNREADABLE as error:
            return _unreadable(file, error)
    return InvalidInput(f"{file} cannot be read: {complaint.partition(chr(10))[0]}")


def _place(file: Path, wanted: Sequence[str], row: int) -> str:
    """The place of a row for a person who opens the file: a quoted field may span several lines."""
    if _is_parquet(file):
        return f"{file}, row {row}"
    for number, (line, _) in enumerate(_records(file, _header(file, wanted)[0])):
        if number == row:
            return f"{file}, row {row} (line {line})"
    return f"{file}, row {row}"


def _header(file: Path, wanted: Sequence[str]) -> tuple[str, list[str]]:
    """The delimiter and the column names: the first delimiter that finds the wanted columns, or else the most columns."""
    delimiters = "\t" if ".tsv" in file.suffixes[-2:] else DELIMITERS
    found: list[tuple[str, list[str]]] = []
    try:
        for delimiter in delimiters:
            _, fields = next(_records(file, delimiter), (0, []))
            found.append((delimiter, [name.strip() for name in fields]))
    except UNREADABLE as error:
        raise _unreadable(file, error) from error
    if not found[0][1]:
        raise InvalidInput(f"{file} is empty; accepted: a header and at least one rating")
    return max(found, key=lambda guess: (set(wanted) <= set(guess[1]), len(guess[1])))


def _records(file: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, and its fields; record 0 is the header. Empty lines do not count."""
    with _opened(file) as text:
        reader = csv.reader(text, delimiter=delimiter)
        line = 1
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1


def _opened(file: Path) -> TextIO:
    if file.name.lower().endswith(".gz"):
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return file.open(encoding="utf-8-sig", newline="")


def _unreadable(file: Path, error: BaseException) -> InvalidInput:
    if isinstance(error, UnicodeError):
        return InvalidInput(f"{file} is not text in UTF-8; accepted: UTF-8")
    return InvalidInput(f"{file} cannot be read: {error}")


def _is_parquet(file: Path) -> bool:
    return file.suffix.lower() == ".parquet"
