"""A front finds the owners of the shards in the database: after a restart, on another port, and never a former owner."""

import asyncio
import contextlib
import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from places import Place

from albatross.policies.item_mean import ItemMean
from albatross.service.api.requests import AskVersion, Feedback, Request
from albatross.service.cluster.front import RemoteEngine
from albatross.service.cluster.lines.addresses import ShardAddress, find_addresses, say_address
from albatross.service.cluster.running import make
from albatross.service.cluster.shard import Shard
from albatross.service.engine.learned.options import Options
from albatross.service.engine.tickets import Promise
from albatross.service.storage.postgres import lease as lease_module
from albatross.service.storage.postgres.home import PostgresHome
from albatross.service.storage.postgres.lease import Lease
from albatross.service.storage.postgres.session import connect
from albatross.service.storage.reading import read_genesis

USERS = ("bob", "ann")
"""One on each of two shards."""


def found(database: str) -> dict[int, ShardAddress]:
    with contextlib.closing(connect(database)) as session:
        return find_addresses(session)


async def asked(front: RemoteEngine, request: Request[Any]) -> Any:
    promise = Promise(request, Future())
    assert front.put([promise]) == []
    return await asyncio.wrap_future(promise.future)


@pytest.fixture
def database(databases: Place) -> str:
    address = databases.address("shop")
    make(address, 2, Options(policy=ItemMean(), scale=(1, 5)))
    return address


@pytest.fixture
def settings() -> Iterator[None]:
    """A shard sets how its process collects garbage and switches between threads."""
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("settings")
def test_a_shard_that_starts_again_on_another_port_is_found(database: str, tmp_path: Path) -> None:
    """What was sent while it was away is answered, and counts once. The other shard is not disturbed."""
    home = PostgresHome(database, shard=0)
    with home.reading() as log:
        genesis = read_genesis(log, str(home))
    shards = [Shard(database, number, str(tmp_path), "127.0.0.1") for number in range(2)]
    before = found(database)

    async def live() -> list[Any]:
        front = RemoteEngine(database, 100, genesis)
        await asyncio.to_thread(front.wait_ready, 60)
        told = [await asked(front, Feedback(f"first {user}", 3, user=user, item="tea")) for user in USERS]
        await asyncio.to_thread(shards[0].close)
        async with asyncio.timeout(10):
            while front.readiness.ready:  # nobody has asked the shard meanwhile
                await asyncio.sleep(0)
        assert front.readiness.detail == "shards are being started: 0"
        meanwhile = [asyncio.create_task(asked(front, Feedback(f"then {user}", 4, user=user, item="tea"))) for user in USERS]
        await meanwhile[1]
        assert not meanwhile[0].done()  # the shard of that user is away
        shards[0] = await asyncio.to_thread(Shard, database, 0, str(tmp_path), "127.0.0.1")
        told += [await task for task in meanwhile]
        told.append(await asked(front, AskVersion("none")))
        await asyncio.to_thread(front.close)
        return told

    told = asyncio.run(live())
    assert all(one.applied and not one.duplicate for one in told[:4])
    assert told[4].ratings == 4
    after = found(database)
    assert (before[0].epoch, after[0].epoch) == (1, 2)
    assert before[0][1:] != after[0][1:]  # another port, and another secret in any case
    assert before[0].secret != after[0].secret
    assert before[1] == after[1]
    for shard in shards:
        shard.close()


@pytest.mark.usefixtures("settings")
def test_a_shard_is_told_what_to_show_strangers(database: str, tmp_path: Path) -> None:
    shard = Shard(database, 0, str(tmp_path), "127.0.0.1", "popular")
    assert shard._engine.options.strangers == "popular"
    shard.close()


@pytest.mark.usefixtures("settings")
def test_a_shard_that_cannot_listen_says_so(database: str, tmp_path: Path) -> None:
    shard = Shard(database, 0, str(tmp_path), "192.0.2.1")  # an address for documents: no machine has it
    assert "shard 0 cannot listen on 192.0.2.1" in str(shard.state())
    shard.close()
    Lease(database, 0).release()  # it has given its lease back


def test_a_former_owner_is_not_found(database: str) -> None:
    first = Lease(database, 0)
    say_address(database, 0, ShardAddress(first.epoch, "127.0.0.1", 1, b"one"))
    assert found(database) == {0: ShardAddress(1, "127.0.0.1", 1, b"one")}
    first.release()
    second = Lease(database, 0)
    assert found(database) == {}  # it has not said yet where it listens
    say_address(database, 0, ShardAddress(first.epoch, "127.0.0.1", 1, b"one"))  # who does not know that it was replaced
    assert found(database) == {}
    say_address(database, 0, ShardAddress(second.epoch, "127.0.0.1", 2, b"two"))
    assert found(database) == {0: ShardAddress(2, "127.0.0.1", 2, b"two")}
    second.release()


def test_after_a_long_pause_an_owner_is_not_sure_until_it_has_renewed_its_lease(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = Lease(database, 0)
    assert lease.is_sure
    later = time.monotonic() + lease.seconds
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(monotonic=lambda: later))
    assert not lease.is_sure
    lease.renewed(later)
    assert lease.is_sure
    lease.lost = lease_module.fenced("here")
    assert not lease.is_sure
    lease.release()


def test_an_owner_whose_connection_has_ended_knows_it_at_once(database: str) -> None:
    """Another may be the owner from then on, long before the lease would have to be renewed."""
    lease = Lease(database, 0, seconds=600)
    with contextlib.closing(connect(database)) as session:
        session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'albatross lease'")
    other = Lease(database, 0)
    lease._thread.join(60)
    assert not lease.is_sure
    assert "the connection" in str(lease.lost)
    other.release()
    lease.release()
