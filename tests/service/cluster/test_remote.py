"""Snapshots of a cluster at a URL: a shard that starts on another machine finds them, and losing them costs time alone."""

from pathlib import Path
from typing import Any

import platformdirs
import pytest
from places import Place
from town import Town

from albatross.cli import main
from albatross.policies.item_mean import ItemMean
from albatross.service.api.errors import NotWritten
from albatross.service.api.requests import Feedback, ForgetUser, TakeSnapshot
from albatross.service.engine.learned.options import Options
from albatross.service.storage.snapshots import KEEP

fsspec = pytest.importorskip("fsspec")
OPTIONS = Options(policy=ItemMean(), scale=(1, 5))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Moves to another machine, which has nothing."""

    def move(name: str) -> Path:
        monkeypatch.setattr(platformdirs, "user_cache_path", lambda _: tmp_path / name)
        return tmp_path / name

    return move


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_shard_on_another_machine_starts_from_a_snapshot(
    databases: Place, tmp_path: Path, machine: Any, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address, url = databases.address("shop"), f"{kind}://{tmp_path}/elsewhere"
    files = fsspec.filesystem(kind)
    machine("first")
    with Town(address, url, OPTIONS, shards=2) as town:
        for number in range(3 * KEEP):
            town.ask(Feedback(f"e{number}", 3, user=f"u{number}", item="tea"))
            town.ask(TakeSnapshot())
        town.settle()
        states = [engine._model.state_id for engine in town.engines]
    for shard in range(2):
        assert len(files.glob(f"{tmp_path}/elsewhere/{shard}/*.json")) == len(files.glob(f"{tmp_path}/elsewhere/{shard}/*.npz")) == KEEP
    machine("second")
    with Town(address, url, shards=2, exchange=False) as town:
        assert [engine._model.state_id for engine in town.engines] == states
        assert all(engine._aside.snapshot_seq > 0 for engine in town.engines)
    machine("third")
    assert main(["cluster", "verify", address, "--snapshots", url]) == 0
    assert capsys.readouterr().out.count("has the state that the log gives") >= 2
    files.rm(f"{tmp_path}/elsewhere", recursive=True)
    machine("fourth")
    with Town(address, url, shards=2, exchange=False) as town:
        assert [engine._model.state_id for engine in town.engines] == states
        assert all(engine._aside.snapshot_seq == 0 for engine in town.engines)
        town.ask(TakeSnapshot())
        shard = next(shard for shard in range(2) if "u1" in town.engines[shard]._model.users.names)
        assert files.glob(f"{tmp_path}/elsewhere/{shard}/*.npz")
        town.ask(ForgetUser("u1"))
        assert not files.glob(f"{tmp_path}/elsewhere/{shard}/*")  # nobody is remembered there, either


def test_a_place_out_of_reach_costs_time_but_nobody_is_half_forgotten(
    databases: Place, tmp_path: Path, machine: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = databases.address("shop")
    home = machine("first")
    kind = type(fsspec.filesystem("memory"))
    with Town(address, f"memory://{tmp_path}", OPTIONS, shards=2, exchange=False) as town:
        town.ask(Feedback("e1", 3, user="ann", item="tea"))

        def fail(*_: object, **__: object) -> None:
            raise ConnectionError("no route")

        for name in ("glob", "put_file", "get_file"):
            monkeypatch.setattr(kind, name, fail)
        with pytest.raises(NotWritten, match="out of reach: no route"):
            town.ask(TakeSnapshot())
        with pytest.raises(NotWritten, match="out of reach: no route"):
            town.ask(ForgetUser("ann"))
        assert town.ask(Feedback("e1", 3, user="ann", item="tea")).duplicate
    assert list(home.rglob("*.npz"))  # beside the log, as without a URL
    machine("second")
    with Town(address, f"memory://{tmp_path}", shards=2, exchange=False) as town:
        assert town.ask(Feedback("e1", 3, user="ann", item="tea")).duplicate
    assert main(["cluster", "verify", address, "--snapshots", "nowhere://bucket"]) == 2
    assert "accepted: a folder, or a URL that fsspec knows" in capsys.readouterr().err
