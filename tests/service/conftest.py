"""One server for all tests that can share one: starting it takes longer than most of them."""

from collections.abc import Iterator

import pytest
from live import Live


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live(tmp_path_factory.mktemp("service") / "shop", "--events", "click=1,cart=3,purchase=5") as live:
        yield live
        assert live.process.poll() is None
        assert not [line for line in live.log if line["event"] == "request failed"]
