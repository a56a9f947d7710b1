"""Kill -9 while sixteen clients write: nothing that was acknowledged is lost. `make chaos` does the same two thousand times."""

import asyncio
from pathlib import Path

import pytest
from faults.chaos import torment

from albatross.service.storage.home import Home, home_of
from albatross.service.tools.private_postgres import PrivatePostgres

KILLS = 200
IN_POSTGRES = 25


def survives(home: Home, scratch: Path, kills: int) -> None:
    verdict = asyncio.run(torment(home, scratch, kills))
    assert verdict.kills == kills
    assert verdict.acknowledged > kills
    assert (verdict.lost, verdict.unexpected, verdict.duplicated) == (0, 0, 0)
    assert verdict.surprises == {}
    assert verdict.live_state == verdict.replayed_state
    assert verdict.exit_code == 0
    assert str(verdict).startswith(f"{kills} kills")


@pytest.mark.xdist_group("service-chaos")
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    survives(home_of(tmp_path / "service"), tmp_path, KILLS)


@pytest.mark.xdist_group("service-chaos")
def test_the_same_where_postgresql_keeps_the_log(tmp_path: Path) -> None:
    with PrivatePostgres() as server:
        survives(home_of(server.create_database("service"), tmp_path / "snapshots"), tmp_path, IN_POSTGRES)
