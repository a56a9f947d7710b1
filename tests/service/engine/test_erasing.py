"""A forgotten user is gone: from the files, from copies under another policy, and from every prediction."""

import hashlib
import sqlite3
from pathlib import Path

import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.policies.alb import ALB
from albatross.service.api.errors import UnknownDecision
from albatross.service.storage.folder import LOG
from albatross.service.storage.handles import RatingContent, content_of
from albatross.service.storage.snapshots import remove_all
from albatross.service.storage.sqlite.backup import copy_folder
from albatross.service.storage.store import DamagedLog


@pytest.fixture
def forgetful(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    with Recommender(folder, scale=(1, 5), policy=ALB(rank=2)) as shop:
        for number in range(30):
            shop.rate_item(f"u{number % 3}", f"i{number % 5}", 1 + number % 5, event_id=f"e{number}")
        shop.recommend("u0", request_id="asked")
        shop.forget_user("u0")
        for number in range(30, 35):
            shop.rate_item("u1", "i1", 3, event_id=f"e{number}")
    return folder


def test_an_erased_rating_cannot_be_confirmed_by_guessing(forgetful: Path) -> None:
    """Neither the hash of its content nor anything a body without its salt would give is in any file."""
    connection = sqlite3.connect(forgetful / LOG)
    digests = {digest for (digest,) in connection.execute("SELECT digest FROM log WHERE body IS NULL")}
    erased = connection.execute("SELECT count(*) FROM handles WHERE content = x''").fetchone()
    kept = connection.execute("SELECT count(*) FROM handles WHERE content != x''").fetchone()
    connection.close()
    assert (len(digests), erased, kept) == (11, (11,), (25,))
    files = b"".join(path.read_bytes() for path in forgetful.rglob("*") if path.is_file())
    for number in range(0, 30, 3):
        content = RatingContent(f"e{number}", float(1 + number % 5), None, "u0", f"i{number % 5}")
        assert content_of(content) not in files
    assert hashlib.blake2b(b"", digest_size=16).digest() not in digests
    assert b'"u0"' not in files
    assert b'"u1"' in files


def test_a_folder_under_another_policy_verifies_after_forgetting(forgetful: Path, tmp_path: Path) -> None:
    assert main(["replay", str(forgetful), str(tmp_path / "other"), "--policy", "item-mean"]) == 0
    assert main(["replay", str(tmp_path / "other"), str(tmp_path / "third"), "--policy", "alb"]) == 0
    for folder in (forgetful, tmp_path / "other", tmp_path / "third"):
        assert main(["verify", str(folder)]) == 0
        with Recommender(folder) as shop:
            assert shop.version().ratings == 25
            for number in range(30):
                late = shop.rate_item(f"u{number % 3}", f"i{number % 5}", 1 + number % 5, event_id=f"e{number}")
                assert (late.duplicate, late.applied) == (True, number % 3 != 0)
            # The content of an erased event is unknown, so another one is no contradiction.
            assert not shop.rate_item("u0", "i0", 5, event_id="e0").applied
            with pytest.raises(UnknownDecision, match="this request_id was erased since; accepted: a new request_id"):
                shop.recommend("u0", request_id="asked")
            assert shop.version().ratings == 25


def test_forgetting_twice_and_restarting(forgetful: Path) -> None:
    with Recommender(forgetful) as shop:
        assert shop.forget_user("u1").events == 15
        expected = shop.version()
    with Recommender(forgetful) as shop:
        assert shop.version() == expected
        assert shop.version().ratings == 10
    assert main(["verify", str(forgetful)]) == 0


def test_an_event_that_is_gone_without_a_forget_is_damage(forgetful: Path, tmp_path: Path) -> None:
    remove_all(forgetful)
    connection = sqlite3.connect(forgetful / LOG, isolation_level=None)
    (seq,) = connection.execute("SELECT max(seq) FROM log WHERE body IS NOT NULL").fetchone()
    connection.execute("UPDATE log SET body = NULL WHERE seq = ?", (seq,))
    connection.execute("UPDATE handles SET content = x'' WHERE seq = ?", (seq,))
    connection.close()
    gone = f"damaged at event {seq}: its content is gone, and no later event says that it was erased"
    with pytest.raises(DamagedLog, match=gone):
        Recommender(forgetful)
    with pytest.raises(DamagedLog, match=gone):
        copy_folder(forgetful, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
