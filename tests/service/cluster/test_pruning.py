"""Payloads that are not kept one by one any more: every shard still replays alone, from its first event, and can still forget."""

import contextlib
from pathlib import Path

import numpy as np
import psycopg
import pytest
from places import Place
from town import Town

from albatross.cli import main
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.service.api.requests import Feedback, ForgetUser, Recommend, Verify
from albatross.service.cluster import pruning
from albatross.service.cluster.merging import _together
from albatross.service.engine.learned.options import Options
from albatross.service.storage.postgres.bases import make_bases

USERS, ITEMS = [f"u{number}" for number in range(12)], [f"i{number}" for number in range(9)]


def rate(town: Town, count: int, seed: int) -> list[tuple[str, str, float]]:
    random = np.random.default_rng(seed)
    given = [(str(random.choice(USERS)), str(random.choice(ITEMS)), float(random.integers(1, 6))) for _ in range(count)]
    for number, (user, item, rating) in enumerate(given):
        town.ask(Feedback(f"{seed}-{number}", rating, user=user, item=item))
    return given


def check_counts(town: Town, given: list[tuple[str, str, float]]) -> None:
    for engine in town.engines:
        model = engine._model
        for number, name in enumerate(model.items.names):
            ratings = [rating for _, item, rating in given if item == name]
            assert model.ledger.item_ratings[number] == len(ratings)
            assert model.ledger.item_sums[number] == pytest.approx(sum(ratings))


def payloads(address: str) -> list[tuple[int, int]]:
    with contextlib.closing(psycopg.connect(address)) as outside:
        return [(row[0], row[1]) for row in outside.execute("SELECT version, shard FROM albatross.payloads ORDER BY 1, 2")]


def states(town: Town) -> list[str]:
    return [engine._model.state_id for engine in town.engines]


def test_a_shard_recovers_alone_after_its_payloads_were_pruned(
    databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = databases.address("shop")
    with Town(address, tmp_path, Options(policy=ALB(rank=2), scale=(1, 5)), shards=3) as town:
        given = rate(town, 60, seed=0)
        decision = town.ask(Recommend("u1"))
        version = town.settle()
        assert len(payloads(address)) > 3
        done = pruning.prune(address, tmp_path, town.pause)  # while all of them run
        assert done.version >= version
        assert done.payloads > 3
        assert {shard for _, shard in payloads(address)} == {0, 1, 2}  # the last of each
        assert len([one for one in payloads(address) if one[0] <= done.version]) <= 3
        check_counts(town, given)
        town.settle()
        grams = [engine._model.agent.state.item_grams for engine in town.engines]
        assert all(np.allclose(one, grams[0], rtol=1e-9, atol=1e-9) for one in grams)
        given += rate(town, 20, seed=1)
        given.append(("u1", decision.item, 3.0))
        town.ask(Feedback("late", 3, decision_id=decision.decision_id))  # of a decision from before
        town.settle()
        check_counts(town, given)
        report = town.ask(Verify())
        assert report.passed, report.detail
        before = states(town)
        assert report.state_id == _together(before)
    with Town(address, tmp_path / "nothing", shards=3, exchange=False) as town:  # without snapshots, from the first event
        assert states(town) == before
    with Town(address, tmp_path, shards=3, exchange=False) as town:
        assert states(town) == before
        assert [engine.complaints for engine in town.engines] == [[], [], []]
    capsys.readouterr()
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path), "--decisions"]) == 0
    assert capsys.readouterr().out.count(f"exchanges up to version {done.version:,} were merged") == 3
    assert main(["cluster", "prune", address, "--snapshots", str(tmp_path)]) == 0  # while none of them runs, and once more
    assert "were merged" in capsys.readouterr().out
    with Town(address, tmp_path, shards=3) as town:
        town.settle()
        check_counts(town, given)
        town.ask(ForgetUser("u3"))
        town.settle()
        check_counts(town, [one for one in given if one[0] != "u3"])
        assert town.ask(Verify()).passed


def test_what_is_begun_is_finished_and_snapshots_from_before_are_not_used(databases: Place, tmp_path: Path) -> None:
    """The process that prunes dies when one shard has begun from the base; that shard dies before it has rebuilt itself."""
    address = databases.address("shop")
    with Town(address, tmp_path, Options(policy=ALB(rank=2), scale=(1, 5)), shards=2) as town:
        given = rate(town, 40, seed=0)
        town.settle()
    kept = {path.name: path.read_bytes() for path in (tmp_path / "0" / "snapshots").glob("*")}
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
        make_bases(outside)
        genesis = town.engines[0].genesis
        version = pruning._begin(outside, genesis, "shop")
        count = len(payloads(address))
        pruning._follow(town.homes[0], outside, version, town.pause)
    assert len(payloads(address)) >= count  # shard 1 needs them
    for name, content in kept.items():
        (tmp_path / "0" / "snapshots" / name).write_bytes(content)
    for path in (tmp_path / "0" / "snapshots").glob("*"):
        if path.name not in kept:
            path.unlink()
    with Town(address, tmp_path, shards=2, exchange=False) as town:
        assert any("from before versions" in complaint for complaint in town.engines[0].complaints)
        assert [engine._model.base for engine in town.engines] == [version, 0]
    with Town(address, tmp_path, shards=2) as town:
        done = pruning.prune(address, tmp_path, town.pause)
        assert done.version >= version
        assert [engine._model.base for engine in town.engines] == [done.version] * 2
        given += rate(town, 10, seed=1)
        town.settle()
        check_counts(town, given)
        assert town.ask(Verify()).passed
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as outside:
        outside.execute("UPDATE albatross.bases SET content = content || 'x' WHERE shard = 1")
    assert main(["cluster", "verify", address, "--snapshots", str(tmp_path)]) == 2


def test_the_next_version_is_the_next_though_nothing_was_said_since(databases: Place, tmp_path: Path) -> None:
    """Sums of ratings alone are the same when they are rebuilt, so no shard has anything to say."""
    address = databases.address("shop")
    with Town(address, tmp_path, Options(policy=ItemMean(), scale=(1, 5)), shards=2) as town:
        given = rate(town, 30, seed=0)
        town.settle()
        done = pruning.prune(address, tmp_path, town.pause)
        town.settle()
        given += rate(town, 10, seed=1)
        assert town.settle() > done.version
        check_counts(town, given)


def test_one_shard_has_nothing_to_prune(databases: Place, capsys: pytest.CaptureFixture[str]) -> None:
    address = databases.address("shop")
    assert main(["cluster", "init", address, "--scale", "1..5", "--policy", "item-mean"]) == 0
    assert main(["cluster", "prune", address]) == 2
    assert "accepted: a cluster of several shards" in capsys.readouterr().err
