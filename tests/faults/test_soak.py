"""Honest clients among hostile ones, for a few seconds: `make soak` does it for ten minutes, and looks at the time they wait."""

import asyncio
from pathlib import Path

import pytest
from faults.overload import lost, overload
from faults.soak import attacks, leaks, soak

SECONDS = 4.0


@pytest.mark.xdist_group("service-soak")
@pytest.mark.parametrize("form", ["json", "text"])
def test_honest_clients_are_served_and_nothing_they_send_is_logged(form: str, tmp_path: Path) -> None:
    story, target = asyncio.run(soak(tmp_path / "shop", SECONDS, form, linger=0.0))
    assert story.honest[200] > 20
    assert set(story.honest) <= {200, 429}
    assert {name for name in story.hostile if ":" not in name} >= set(attacks()) - {"slow body", "slow head"}
    assert leaks(target) == []
    assert target.exit_code == 0


@pytest.mark.xdist_group("service-soak")
def test_under_overload_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    calm, crowd, target = asyncio.run(overload(tmp_path / "shop", 2.0))
    assert set(crowd.statuses) <= {200, 429}
    assert crowd.statuses[200] > 0
    assert lost(tmp_path / "shop", calm, crowd) == 0
    assert target.exit_code == 0
