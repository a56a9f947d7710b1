"""The kept list of small faults: where each is put, and which tests should notice.

There is a file per folder of `src/albatross`, and in it a table per source file:

    [statistics]
    tests = ["tests/studies/test_statistics.py"]
    interpreted = true
    faults = [
        { fault = "what is wrong", old = "text that occurs once", new = "text in its place" },
    ]

`tests` is what pytest is to run, small enough for seconds. `interpreted` runs it without the compiler: a fault in compiled code would
compile everything anew. A fault may have `tests` of its own, and `equivalent`: why no test can notice it.
"""

import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
TREE = HERE.parents[1]
"""The checkout."""


class Mutant(NamedTuple):
    """One change to one file."""

    file: str
    fault: str
    old: str
    new: str
    tests: tuple[str, ...]
    interpreted: bool
    equivalent: str

    @property
    def name(self) -> str:
        return f"{self.file.removeprefix('src/albatross/').removesuffix('.py')}: {self.fault}"

    def applied(self, content: str) -> str:
        """The content of the file with the fault in it."""
        if content.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.old!r} occurs {content.count(self.old)} times in {self.file}; accepted: once")
        return content.replace(self.old, self.new)


def read_list() -> list[Mutant]:
    """All faults, in the order of the files."""
    return [mutant for path in sorted(HERE.glob("*.toml")) for mutant in read_folder(path)]


def read_folder(path: Path) -> list[Mutant]:
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Mutant(
            f"src/albatross/{path.stem}/{file}.py",
            entry["fault"],
            entry["old"],
            entry["new"],
            tuple(entry.get("tests", table.get("tests", ()))),
            bool(table.get("interpreted", False)),
            entry.get("equivalent", ""),
        )
        for file, table in tables.items()
        for entry in table["faults"]
    ]
