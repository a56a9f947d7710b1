"""Stores that fail when a test tells them to."""

from collections.abc import Callable, Sequence
from pathlib import Path

from albatross.service.api.errors import DiskFull, StorageFailed
from albatross.service.storage.log import SQLiteLog
from albatross.service.storage.store import Row


class Switch:
    """What the next commits meet: nothing, or an error. A failing commit keeps nothing."""

    def __init__(self) -> None:
        self.error: DiskFull | StorageFailed | None = None

    def store(self) -> Callable[[Path, bool], SQLiteLog]:
        switch = self

        class Failing(SQLiteLog):
            def append(self, rows: Sequence[Row]) -> None:
                if switch.error is not None:
                    raise switch.error
                super().append(rows)

        return Failing
