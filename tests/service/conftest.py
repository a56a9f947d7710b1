"""One server for all tests that can share one: starting it takes longer than most of them. The same for PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from live import Live
from places import Place

from albatross.core.errors import InvalidInput
from albatross.service.tools.private_postgres import PrivatePostgres, binaries


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live(tmp_path_factory.mktemp("service") / "shop", "--events", "click=1,cart=3,purchase=5") as live:
        yield live
        assert live.process.poll() is None
        assert not [line for line in live.log if line["event"] == "request failed"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PrivatePostgres]:
    try:
        binaries()
    except InvalidInput as missing:
        pytest.skip(str(missing))
    with PrivatePostgres() as server:
        yield server


@pytest.fixture
def databases(tmp_path: Path, postgres: PrivatePostgres) -> Place:
    """Homes in PostgreSQL."""
    return Place(tmp_path, postgres)


@pytest.fixture(params=["folder", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Homes of either kind: whatever keeps the log, a service does the same."""
    return Place(tmp_path, request.getfixturevalue("postgres") if request.param == "postgres" else None)
