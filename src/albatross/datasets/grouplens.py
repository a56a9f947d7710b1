"""Shared by the GroupLens data sets: terms, citation, and a file with user, movie, rating and time per line."""

from pathlib import Path

from albatross.core.ratings import RatingTable, Scale, tabulated
from albatross.datasets.archive import Archive, columns

TERMS = (
    "For research. Acknowledge the use in publications; do not state or imply that the University of Minnesota or GroupLens endorses you; "
    "do not redistribute the data, nor use it commercially, without permission."
)
CITATION = "Harper, Konstan: The MovieLens Datasets: History and Context. ACM TiiS 5(4), 2015"


def archive_of(name: str, checksum: str, *other_names: str) -> Archive:
    """The archive as downloaded; it may also be stored under another name."""
    address = f"https://files.grouplens.org/datasets/movielens/{name}"
    return Archive(address=address, names=(name, *other_names), checksum=checksum, terms=TERMS)


def read_ratings(path: Path, member: str, separator: str, scale: Scale, source: str, header: str = "") -> RatingTable:
    types = {"user": "INTEGER", "item": "INTEGER", "rating": "DOUBLE", "time": "BIGINT"}
    found = columns(path, member, types, separator=separator, header=header)
    return tabulated(found["user"], found["item"], found["rating"], scale=scale, source=source)
