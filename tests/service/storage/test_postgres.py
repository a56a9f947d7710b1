"""The log in PostgreSQL: what is special about it. What it has in common with a folder is tested with either, by `place`."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from places import Place

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.service.api.errors import DiskFull, NotReady, NotWritten, StorageFailed
from albatross.service.api.requests import AskDisk, AskVersion, Feedback, FeedbackBatch, ViewUser
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.http.access.keys import Keys
from albatross.service.storage.handles import RatingContent, content_of
from albatross.service.storage.home import home_of
from albatross.service.storage.postgres import keyring, lease, log
from albatross.service.storage.snapshots import remove_all
from albatross.service.storage.store import DamagedLog
from albatross.service.tools.private_postgres import PrivatePostgres

OPTIONS = Options(scale=(1, 5), policy=ItemMean(), snapshot_every=0)


def keep_snapshots(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are given an address alone keep snapshots here."""
    monkeypatch.setattr("albatross.service.storage.postgres.home.platformdirs.user_cache_path", lambda name: folder / name)


def fill(shop: Recommender, count: int = 30) -> None:
    for number in range(count):
        shop.rate_item(f"u{number % 3}", f"i{number % 5}", 1 + number % 5, event_id=f"e{number}")


@contextlib.contextmanager
def asking(address: str) -> Iterator[psycopg.Connection[Any]]:
    with contextlib.closing(psycopg.connect(address, autocommit=True)) as connection:
        yield connection


def told(address: str, question: str) -> Any:
    """The first value of the answer."""
    with asking(address) as connection:
        row = connection.execute(question).fetchone()
    return None if row is None else row[0]


def test_a_log_moves_between_folder_and_database_bit_for_bit(
    databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_snapshots(tmp_path / "cache", monkeypatch)
    folder, back, address = str(tmp_path / "folder"), str(tmp_path / "back"), databases.address("shop")
    with Recommender(folder, scale=(1, 5), policy=ALB(rank=2)) as shop:
        fill(shop)
        decision = shop.recommend("u1", request_id="asked")
        shop.forget_user("u0")
        expected = shop.version()
    assert main(["keys", "create", folder, "--scope", "read"]) == 0
    assert main(["restore", folder, address]) == 0
    assert main(["restore", folder, address]) == 2  # there is a log already
    assert main(["verify", address, "--decisions"]) == 0
    assert main(["doctor", address]) == 0
    assert main(["export", address, str(tmp_path / "events.jsonl")]) == 0
    assert main(["replay", address, str(tmp_path / "other"), "--policy", "item-mean"]) == 0
    assert main(["backup", address, back]) == 0
    said = capsys.readouterr()
    assert f"state id {expected.state_id}" in said.out
    assert "has a log already" in said.err
    assert "in use by nobody" in said.out
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == expected.seq - 10  # less what was erased
    assert (tmp_path / "back" / "keys.json").read_bytes() == (tmp_path / "folder" / "keys.json").read_bytes()
    for where in (address, back):
        with Recommender(where) as shop:
            version = shop.version()
            assert (version.seq, version.chain, version.state_id) == (expected.seq, expected.chain, expected.state_id)
            assert shop.recommend("u1", request_id="asked").decision_id == decision.decision_id
            assert shop.rate(decision, 4, event_id="late").applied
            assert not shop.rate_item("u0", "i0", 1, event_id="e0").applied
            assert shop.snapshot().seq == version.seq + 1
    assert told(address, "SELECT count(*) FROM albatross.keys") == 1


def test_an_append_of_many_rows_is_copied(databases: Place) -> None:
    home = databases / "shop"
    count = log.COPIED_FROM + 5
    with Engine(home, OPTIONS) as engine:
        engine.wait_ready()
        batch = FeedbackBatch([Feedback(f"e{number}", 3, user=f"u{number % 7}", item="tea") for number in range(count)])
        answers = engine.ask(batch).answers
        assert [answer.seq for answer in answers[-2:]] == [count + 1, count + 2]  # type: ignore[union-attr]
        assert engine.ask(Feedback("e3", 3, user="u3", item="tea")).duplicate
        disk = engine.ask(AskDisk())
        assert disk.log_bytes is not None
        assert disk.log_bytes > 100_000
        expected = engine.ask(AskVersion()).state_id
    remove_all(home.folder)
    with Engine(home) as engine:
        engine.wait_ready()
        assert engine.ask(AskVersion()).state_id == expected


@pytest.mark.parametrize("when", ["IMMEDIATE", "DEFERRED"])
def test_no_room_in_the_database_acknowledges_nothing_and_reading_goes_on(when: str, databases: Place) -> None:
    """PostgreSQL says that its disk is full, while rows are written or in the commit."""
    address = databases.address("shop")
    with Engine(databases / "shop", OPTIONS) as engine, asking(address) as outside:
        engine.wait_ready()
        engine.ask(Feedback("kept", 4, user="ann", item="tea"))
        before = engine.ask(AskVersion())
        outside.execute("CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$")
        outside.execute(
            f"CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON albatross.log DEFERRABLE INITIALLY {when} "
            "FOR EACH ROW EXECUTE FUNCTION full_disk()"
        )
        batch = FeedbackBatch([Feedback(f"b{number}", 3, user="bob", item="tea") for number in range(log.COPIED_FROM)])
        for request in (Feedback("lost", 1, user="bob", item="tea"), batch):
            with pytest.raises(DiskFull, match="nothing of this was kept"):
                engine.ask(request)
        assert engine.ask(AskVersion()) == before
        assert engine.ask(ViewUser("ann")).ratings == 1
        outside.execute("DROP TRIGGER full_disk ON albatross.log")
        assert not engine.ask(Feedback("lost", 1, user="bob", item="tea")).duplicate


def test_a_second_process_is_refused_and_a_lease_is_given_back(databases: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "GRACE", 0.01)
    with Recommender(databases / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        fill(shop, 3)
        with pytest.raises(InvalidInput, match=r"in use by .*, process \d+; accepted: one process"):
            Recommender(databases / "shop")
        assert main(["doctor", databases.address("shop"), "--accept-loss"]) == 2
        fill(shop, 4)
    epoch = told(databases.address("shop"), "SELECT epoch FROM albatross.shards")
    with Recommender(databases / "shop") as shop:
        assert shop.version().ratings == 4
    assert told(databases.address("shop"), "SELECT epoch FROM albatross.shards") == epoch + 1


def test_an_owner_that_was_silent_is_fenced(databases: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease moves while the owner does not notice: its next append changes nothing, and it ends."""
    monkeypatch.setattr(lease, "GRACE", 0.01)
    failures: list[BaseException] = []
    former = Engine(databases / "shop", OPTIONS, on_failure=failures.append)
    former.wait_ready()
    former.ask(Feedback("kept", 4, user="ann", item="tea"))
    with asking(databases.address("shop")) as outside:
        outside.execute("UPDATE albatross.shards SET until = 'epoch'")
    with Engine(databases / "shop") as present:
        present.wait_ready()
        with pytest.raises(StorageFailed, match="another process has replaced this one"):
            former.ask(Feedback("late", 4, user="bob", item="tea"))  # the head is where it was: the epoch alone is another
        former.close()
        present.ask(Feedback("second", 4, user="ann", item="tea"))
        assert isinstance(failures[0], lease.Fenced)
        assert present.ask(AskVersion()).ratings == 2
        assert not present.ask(Feedback("late", 4, user="bob", item="tea")).duplicate
    assert main(["verify", databases.address("shop")]) == 0


def test_an_owner_that_is_idle_notices_that_it_was_replaced(databases: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "GRACE", 0.01)
    monkeypatch.setattr(lease, "SECONDS", 0.1)
    monkeypatch.setattr(log, "BEAT", 0.02)
    former = Engine(databases / "shop", OPTIONS)
    former.wait_ready()
    told(databases.address("shop"), "UPDATE albatross.shards SET epoch = epoch + 1 RETURNING 1")
    former._owner.join()
    assert former.readiness.phase == "failed"
    assert "another process has replaced this one" in str(former.readiness.detail)


@pytest.mark.parametrize("harm", ["content", "row", "end", "head", "handle", "chain"])
def test_damage_is_refused_with_its_place(harm: str, databases: Place, capsys: pytest.CaptureFixture[str]) -> None:
    home, address = databases / "shop", databases.address("shop")
    with Recommender(home, scale=(1, 5), policy=ItemMean()) as shop:
        fill(shop, 10)
    remove_all(home.folder)
    statement, expected = {
        "content": ("UPDATE albatross.log SET body = set_byte(body, 20, 1) WHERE seq = 7", "damaged at event 7: its content"),
        "row": ("DELETE FROM albatross.log WHERE seq = 7", "damaged at event 7: it is missing"),
        "end": ("DELETE FROM albatross.log WHERE seq > 12", "the log ends at event 12, but events up to 16 were acknowledged"),
        "head": ("DELETE FROM albatross.shards", "there is no (head|shard)|has no shard 0"),
        "handle": ("DELETE FROM albatross.handles WHERE seq = 16", "damaged at event 16: it cannot be found by its id"),
        "chain": ("UPDATE albatross.log SET chain = set_byte(chain, 0, 255 - get_byte(chain, 0)) WHERE seq = 9", "damaged at event 9"),
    }[harm]
    with asking(address) as outside:
        assert outside.execute(statement).rowcount > 0
    with pytest.raises(InvalidInput, match=expected):
        Recommender(home)
    assert main(["verify", address]) == 2
    assert main(["doctor", address]) == 2
    assert "trouble" in capsys.readouterr().out


def test_a_database_that_lost_its_end_is_noticed_by_a_snapshot(
    databases: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when a replica that was behind is promoted: rows and head are consistent, and older than what was acknowledged."""
    keep_snapshots(tmp_path / "cache", monkeypatch)
    address = databases.address("shop")
    with Recommender(address, scale=(1, 5), policy=ItemMean()) as shop:
        fill(shop, 10)
    with asking(address) as outside:
        outside.execute("DELETE FROM albatross.log WHERE seq > 12")
        outside.execute("DELETE FROM albatross.handles WHERE seq > 12")
        outside.execute("UPDATE albatross.shards SET (seq, chain) = (SELECT seq, chain FROM albatross.log WHERE seq = 12)")
    with pytest.raises(DamagedLog, match=r"the log ends at event 12, but events up to 16 were acknowledged, as .*npz says"):
        Recommender(address)
    assert main(["doctor", address, "--accept-loss"]) == 0
    assert "from now on the log ends at event 12" in capsys.readouterr().out
    with Recommender(address) as shop:
        assert shop.version().seq == 12


def test_who_is_forgotten_is_gone_from_the_tables(databases: Place, postgres: PrivatePostgres) -> None:
    address = databases.address("shop")
    with Recommender(databases / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        fill(shop)
        decision = shop.recommend("u0")
        shop.rate(decision, 4, event_id="answer")
        assert shop.forget_user("u0").events == 12
        assert shop.version().ratings == 20
        assert (shop.rate(decision, 4, event_id="answer").duplicate, shop.version().ratings) == (True, 20)
    assert told(address, "SELECT count(*) FROM albatross.log WHERE body IS NULL") == 12
    guess = content_of(RatingContent("e0", 1.0, None, "u0", "i0"))
    with asking(address) as outside:
        assert outside.execute("SELECT FROM albatross.handles WHERE content = %s", (guess,)).fetchone() is None
        assert outside.execute("SELECT FROM albatross.log WHERE position(%s IN body) > 0", (b'"u0"',)).fetchone() is None
    assert main(["verify", address]) == 0


def test_relaxed_durability_is_synchronised_by_and_by(databases: Place) -> None:
    with Recommender(databases / "shop", scale=(1, 5), policy=ItemMean(), durability="relaxed") as shop:
        fill(shop)
        store = shop.engine._store
        assert isinstance(store, log.PostgresLog)
        assert store._session.execute("SHOW synchronous_commit").fetchone() == ("off",)
        shop.snapshot()
        assert store._flushed == shop.version().seq
    with Recommender(databases / "shop") as shop:
        assert shop.version().ratings == 30
        store = shop.engine._store
        assert isinstance(store, log.PostgresLog)
        assert store._session.execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_what_cannot_be_is_refused_with_a_sentence(databases: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = databases.address("shop")
    with pytest.raises(InvalidInput, match="scale is missing"):
        Recommender(address)
    assert told(address, "SELECT to_regclass('albatross.log')") is None  # a service that cannot be made is not made
    for words, sentence in (
        (["verify", address], "has no log of albatross"),
        (["forget", address, "ann"], "has no log of albatross"),
        (["serve", "postgresql://ann:secret@/shop?host=/nowhere", "--scale", "1..5"], "cannot be reached"),
        (["serve", "postgresql://ann:secret@/shop?no=such"], "not an address of PostgreSQL"),
        (["serve", "mysql://ann@host/shop"], "is not supported"),
        (["serve", str(tmp_path / "shop"), "--snapshots", str(tmp_path)], "keeps its snapshots itself"),
    ):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert "secret" not in said
    with Recommender(databases / "shop", scale=(1, 5), policy=ItemMean()) as shop, pytest.raises(NotWritten, match="albatross backup"):
        shop.backup()
    with asking(address) as outside:
        outside.execute("UPDATE albatross.about SET shards = 4")
    with pytest.raises(InvalidInput, match="has 4 shards"):
        Recommender(databases / "shop")
    with asking(address) as outside:
        outside.execute("UPDATE albatross.about SET shards = 1, format = 99")
    with pytest.raises(InvalidInput, match="has format 99"):
        Recommender(databases / "shop")


def test_an_import_into_a_database(databases: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_snapshots(tmp_path / "cache", monkeypatch)
    (tmp_path / "ratings.csv").write_text("user,item,rating\n" + "".join(f"u{k % 9},i{k % 5},{1 + k % 5}\n" for k in range(100)))
    address = databases.address("shop")
    command = ["import", address, str(tmp_path / "ratings.csv"), "--scale", "1..5", "--policy", "item-mean"]
    assert main(command) == 0
    assert main(command) == 0
    with Recommender(home_of(address)) as shop:
        assert shop.version().ratings == 100
    assert main(["snapshot", address]) == 0
    assert main(["forget", address, "u1"]) == 0
    with Recommender(home_of(address)) as shop:
        assert shop.version().ratings == 89


def test_keys_are_in_the_database(databases: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Made before there is a log, known to every process that serves it, ended in all of them."""
    monkeypatch.setattr(keyring, "LOOK_SECONDS", 0.005)
    address = databases.address("shop")
    keys = Keys((databases / "shop").keyring)
    assert not keys.needed
    assert main(["keys", "revoke", address, "nobody"]) == 2
    assert main(["keys", "create", address, "--scope", "read"]) == 0
    given = capsys.readouterr().out.strip()
    with Recommender(databases / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        fill(shop, 1)

    def knows() -> bool:
        keys.refresh()
        return keys.find(given) is not None

    end = time.monotonic() + 60
    while not knows():
        assert time.monotonic() < end
    assert main(["keys", "list", address]) == 0
    assert given.split("_")[1] in capsys.readouterr().out
    assert main(["keys", "revoke", address, given.split("_")[1]]) == 0
    while knows():
        assert time.monotonic() < end
    assert keys.needed
    monkeypatch.setattr(keyring, "STALE_SECONDS", -1.0)
    with pytest.raises(NotReady, match="cannot be read"):
        _ = keys.needed
    keys.ring.close()


def test_an_older_postgresql(tmp_path: Path) -> None:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        pytest.skip("there is no PostgreSQL of Debian on this machine")
    with PrivatePostgres(programs=programs[0]) as server:
        home = home_of(server.create_database("shop"), tmp_path / "shop")
        for count in (10, 20):
            with Recommender(home, scale=(1, 5), policy=ItemMean()) as shop:
                fill(shop, count)
        with Recommender(home) as shop:
            assert shop.forget_user("u0").events == 7
            assert shop.version().ratings == 13
        with home.reading() as kept:
            assert kept.head.seq == 1 + 5 + 20 + 1
