"""Stores that fail when a test tells them to."""

from collections.abc import Callable, Sequence

from albatross.service.api.errors import DiskFull, StorageFailed
from albatross.service.storage.home import Home
from albatross.service.storage.store import Row, Store


class Switch:
    """What the next commits meet: nothing, or an error. A failing commit keeps nothing."""

    def __init__(self) -> None:
        self.error: DiskFull | StorageFailed | None = None

    def store(self) -> Callable[[Home, bool], Store]:
        """What opens the store of a home, so that its commits meet the switch."""

        def opened(home: Home, durable: bool) -> Store:
            store = home.open(durable)
            append = store.append

            def failing(rows: Sequence[Row]) -> None:
                if self.error is not None:
                    raise self.error
                append(rows)

            store.append = failing  # type: ignore[method-assign]
            return store

        return opened
