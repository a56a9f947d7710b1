"""Kill -9 while sixteen clients write: nothing that was acknowledged is lost. `make chaos` does the same two thousand times."""

import asyncio
from pathlib import Path

import pytest
from faults.chaos import torment

KILLS = 200


@pytest.mark.xdist_group("service-chaos")
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    verdict = asyncio.run(torment(tmp_path / "service", KILLS))
    assert verdict.kills == KILLS
    assert verdict.acknowledged > KILLS
    assert (verdict.lost, verdict.unexpected, verdict.duplicated) == (0, 0, 0)
    assert verdict.surprises == {}
    assert verdict.live_state == verdict.replayed_state
    assert verdict.exit_code == 0
    assert str(verdict).startswith(f"{KILLS} kills")
