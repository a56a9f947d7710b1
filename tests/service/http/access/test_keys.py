"""The file of keys: what is in it, who may change it at the same time, and when a key ends."""

import hashlib
import json
import multiprocessing
import stat
import sys
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from in_process import Service, run

from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.service.api.errors import NotReady
from albatross.service.http.access import keys as keys_module
from albatross.service.http.access.keys import COST, Key, Keys, Unverified

OLD_SECRET = "A" * 43


def name_of(key: str) -> str:
    return key.split("_")[1]


def old_file(folder: Path) -> str:
    """A file as it was written before keys had a fast hash; returns the key in it."""
    salt = bytes(16)
    digest = hashlib.scrypt(OLD_SECRET.encode(), salt=salt, dklen=32, **COST)
    entry = {"name": "0123abcd", "scopes": ["read"], "salt": salt.hex(), "digest": digest.hex(), "made": "2026-01-01T00:00:00Z", "note": ""}
    (folder / "keys.json").write_text(json.dumps({"keys": [entry]}))
    return f"alb_0123abcd_{OLD_SECRET}"


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> type[datetime]:
    """A clock that a test can set."""

    class Clock(datetime):
        ahead = timedelta(0)

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + cls.ahead

    monkeypatch.setattr(keys_module, "datetime", Clock)
    return Clock


def test_only_a_salted_hash_is_kept_and_for_the_owner_alone(tmp_path: Path) -> None:
    made = [Keys(tmp_path).create(["read"]) for _ in range(3)]
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert not any(key.split("_", 2)[2] in path.read_text() for key in made), path
    kept = list(Keys(tmp_path))
    assert len({key.digest for key in kept}) == len({key.salt for key in kept}) == len(set(made)) == 3


def test_a_key_is_itself_and_nothing_near_it(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    good = keys.create(["recommend", "read"], "the web site")
    found = keys.verify(good)
    assert found is not None
    assert (found.scopes, found.note) == (("recommend", "read"), "the web site")
    for wrong in (
        good[:-1],
        good + "A",
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good.upper(),
        "alb__",
        "",
        "\ud800",
        "alb_" + name_of(good) + "_",
    ):
        assert keys.verify(wrong) is None, wrong


def test_a_key_ends_when_it_expires(tmp_path: Path, at: type[datetime]) -> None:
    keys = Keys(tmp_path)
    key = keys.create(["read"], expires=datetime.now(UTC) + timedelta(hours=1))
    assert keys.verify(key) is not None
    at.ahead = timedelta(hours=1, seconds=1)  # type: ignore[attr-defined]
    assert keys.verify(key) is None
    assert keys.needed  # a file in which all keys have expired opens nothing
    with pytest.raises(InvalidInput, match="accepted: a time in the future"):
        keys.create(["read"], expires=datetime.now(UTC) - timedelta(hours=1))


def test_while_a_key_is_rotated_both_work_and_then_the_new_one_does(tmp_path: Path, at: type[datetime]) -> None:
    keys = Keys(tmp_path)
    old = keys.create(["feedback"], "the shop")
    new = keys.rotate(name_of(old), timedelta(days=1))
    for key in (old, new):
        found = keys.verify(key)
        assert found is not None
        assert (found.scopes, found.note) == (("feedback",), "the shop")
    at.ahead = timedelta(days=1, seconds=1)  # type: ignore[attr-defined]
    assert keys.verify(old) is None
    assert keys.verify(new) is not None
    with pytest.raises(InvalidInput, match="has expired"):
        keys.rotate(name_of(old))
    at.ahead = timedelta(0)  # type: ignore[attr-defined]
    short = keys.create(["read"], expires=datetime.now(UTC) + timedelta(minutes=1))
    keys.rotate(name_of(short))
    (kept,) = (key for key in keys if key.name == name_of(short))
    assert not kept.expired(datetime.now(UTC))
    assert kept.expired(datetime.now(UTC) + timedelta(minutes=2))  # to rotate a key never makes it last longer


def change(folder: Path, number: int) -> str:
    keys = Keys(folder)
    keys.revoke(keys.create(["read"], note="short-lived").split("_")[1])
    return keys.create(["read"], note=str(number))


def test_processes_that_change_the_file_at_once_lose_nothing_and_revive_nothing(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn").Pool(8) as pool:
        made = pool.starmap(change, [(tmp_path, number) for number in range(40)])
    keys = Keys(tmp_path)
    assert all(keys.verify(key) for key in made)
    assert sorted(key.note for key in keys) == sorted(str(number) for number in range(40))


def test_a_change_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = Keys(tmp_path).create(["read"])

    def fail(folder: Path) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("albatross.core.files.os.fsync", fail)
    with pytest.raises(OSError, match="gone"):
        Keys(tmp_path).create(["admin"])
    assert [kept.name for kept in Keys(tmp_path)] == [name_of(key)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys.json", "keys.lock"]


def test_the_folder_is_synchronised_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synchronised: list[Path] = []
    monkeypatch.setattr("albatross.core.files.sync_folder", synchronised.append)
    Keys(tmp_path).create(["read"])
    assert synchronised == [tmp_path]


def test_an_older_file_is_read_and_its_keys_become_fast(tmp_path: Path) -> None:
    key = old_file(tmp_path)
    keys = Keys(tmp_path)
    assert keys.needed
    with pytest.raises(Unverified):
        keys.find(key)
    assert keys.verify(f"{key}x") is None
    assert keys.verify(key) is not None
    assert keys.find(key) is not None
    keys.create(["admin"])
    assert keys.verify(key) is not None


def test_wrong_guesses_of_a_known_name_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow hash is computed once, for the key itself; a guess is refused without it, and delays no other request."""
    asked: list[str] = []
    slow = keys_module._slow

    def counted(secret: str, salt: bytes) -> bytes:
        asked.append(secret)
        return slow(secret, salt)

    monkeypatch.setitem(keys_module._HASHES, "scrypt", counted)
    key = old_file(tmp_path)

    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.get("/v1/series", f"Authorization: Bearer {key}\r\n")
        assert await talk.status() == 200
        for number in range(50):
            talk.get("/v1/series", f"Authorization: Bearer {key[:-4]}{number:04}\r\n")
            assert await talk.status() == 401
        talk.get("/v1/series", f"Authorization: Bearer {key}\r\n")
        assert await talk.status() == 200

    run(tmp_path, play)
    assert asked == [OLD_SECRET]


def test_keys_that_wait_for_the_slow_hash_are_few(tmp_path: Path) -> None:
    key = old_file(tmp_path)

    async def play(service: Service) -> None:
        talks = [await service.talk() for _ in range(30)]
        for number, talk in enumerate(talks):
            talk.get("/v1/series", f"Authorization: Bearer {key[:-4]}{number:04}\r\n")
        statuses = [await talk.status() for talk in talks]
        assert statuses.count(401) >= 1
        assert statuses.count(429) >= 1
        assert set(statuses) == {401, 429}
        talk = await service.talk()
        talk.get("/healthz")
        assert await talk.status() == 200

    run(tmp_path, play)


def test_a_file_that_is_gone_opens_nothing_after_a_restart_either(tmp_path: Path) -> None:
    Keys(tmp_path).create(["read"])
    (tmp_path / "keys.json").unlink()
    with pytest.raises(NotReady, match="albatross keys create"):
        _ = Keys(tmp_path).needed
    Keys(tmp_path).create(["read"])
    assert Keys(tmp_path).needed


def test_what_is_unknown_is_named_and_makes_no_file(tmp_path: Path) -> None:
    for wrong in (lambda: Keys(tmp_path).revoke("nobody"), lambda: Keys(tmp_path).rotate("nobody"), lambda: Keys(tmp_path).create(["all"])):
        with pytest.raises(InvalidInput, match="unknown"):
            wrong()
    assert not list(tmp_path.iterdir())
    assert not Keys(tmp_path).needed


def test_the_key_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "shop")
    arguments = ["--scope", "recommend", "--scope", "read", "--note", "the web site", "--expires", "30d"]
    assert main(["keys", "create", folder, *arguments]) == 0
    assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
    key = capsys.readouterr().out.strip()
    _, name, secret = key.split("_", 2)
    assert len(secret) == 43  # 256 bits
    assert main(["keys", "rotate", folder, name, "--overlap", "2h"]) == 0
    new = capsys.readouterr().out.strip()
    assert main(["keys", "create", folder, "--scope", "admin", "--expires", "2099-12-31"]) == 0
    assert main(["keys", "create", folder, "--scope", "feedback"]) == 0
    capsys.readouterr()
    assert main(["keys", "list", folder]) == 0
    listing = capsys.readouterr().out
    assert all(word in listing for word in (name, name_of(new), "recommend read", "the web site", "never", "2100-01-01T00:00:00Z"))
    assert secret not in listing
    found: Key | None = Keys(folder).verify(key)
    assert found is not None
    assert found.expires is not None
    assert main(["keys", "revoke", folder, name]) == 0
    assert Keys(folder).verify(key) is None
    for wrong in (
        ["revoke", folder, name],
        ["create", folder, "--scope", "everything"],
        ["create", folder, "--scope", "read", "--expires", "soon"],
        ["create", folder, "--scope", "read", "--expires", "2026-02-31"],
        ["create", folder, "--scope", "read", "--expires", "9999-12-31"],
        ["create", folder, "--scope", "read", "--expires", "2020-01-01"],
        ["rotate", folder, name_of(new), "--overlap", "-1d"],
        ["list", str(tmp_path / "nowhere")],
    ):
        assert main(["keys", *wrong]) == 2, wrong
        assert "accepted" in (complaint := capsys.readouterr().err) or "There is" in complaint or "overlap" in complaint


def test_a_rotated_key_lasts_as_long_as_the_old_one_was_made_for(tmp_path: Path, at: type[datetime]) -> None:
    keys = Keys(tmp_path)
    old = keys.create(["read"], expires=datetime.now(UTC) + timedelta(days=30))
    at.ahead = timedelta(days=20)  # type: ignore[attr-defined]
    new = keys.rotate(name_of(old))
    at.ahead = timedelta(days=49)  # type: ignore[attr-defined]
    assert keys.verify(old) is None
    assert keys.verify(new) is not None
    at.ahead = timedelta(days=50, minutes=1)  # type: ignore[attr-defined]
    assert keys.verify(new) is None


def test_a_key_that_lasts_to_the_end_of_time_can_be_rotated(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    old = keys.create(["read"], expires=datetime(9999, 12, 31, tzinfo=UTC))
    path = tmp_path / "keys.json"
    entry = json.loads(path.read_text())
    entry["keys"][0]["made"] = "2001-01-01T00:00:00Z"
    path.write_text(json.dumps(entry))
    assert keys.verify(keys.rotate(name_of(old))) is not None


@pytest.mark.parametrize("field", ["salt", "digest"])
@pytest.mark.parametrize("value", ["not hexadecimal", "abc", "ä0"])
def test_a_file_with_a_hash_that_is_none_is_broken(tmp_path: Path, field: str, value: str) -> None:
    key = Keys(tmp_path).create(["read"])
    entry = json.loads((tmp_path / "keys.json").read_text())
    entry["keys"][0][field] = value
    (tmp_path / "keys.json").write_text(json.dumps(entry))

    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.get("/v1/series", f"Authorization: Bearer {key}\r\n")
        assert await talk.code() == "not-ready"

    run(tmp_path, play)
