"""Logs that were written once open for ever: of each format one is kept, with what was answered when it was written."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.service.api.answers import Decision
from albatross.service.api.errors import AlreadyRated, EventReused, UnknownDecision
from albatross.service.storage.events import FORMAT
from albatross.service.storage.folder import LOG
from albatross.service.storage.migration import MIGRATIONS
from albatross.service.storage.sqlite.log_reader import format_of

GOLDEN = Path(__file__).parents[1] / "golden"
FORMATS = sorted(path.name for path in GOLDEN.glob("format-*"))


@pytest.fixture(params=FORMATS)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """A copy of a folder with a golden log, and what is known of it."""
    source = GOLDEN / request.param
    shutil.copytree(source, tmp_path / "shop", ignore=shutil.ignore_patterns("facts.json"))
    return tmp_path / "shop", json.loads((source / "facts.json").read_text())


def test_there_is_one_of_each_format() -> None:
    assert [f"format-{number}" for number in (*MIGRATIONS, FORMAT)] == FORMATS


def test_a_golden_log_opens_and_is_what_it_was(golden: tuple[Path, Any]) -> None:
    folder, facts = golden
    decisions = {name: msgspec.convert(decision, Decision) for name, decision in facts["decisions"].items()}
    with Recommender(folder) as shop:
        version = shop.version()
        assert {name: getattr(version, name) for name in facts["version"]} == facts["version"]
        # The same question gets the same answer, id and explanation included.
        assert shop.recommend("u1", 3, explain=True, request_id="r-explained") == decisions["explained"]
        stranger = shop.recommend(
            "nobody", candidates=["mate", "tea", "ü €"], exclude=["tea"], exclude_seen="pending", request_id="r-stranger"
        )
        assert stranger == decisions["stranger"]
        with pytest.raises(EventReused):
            shop.recommend("u1", 2, explain=True, request_id="r-explained")
        # Deliveries of then are recognised; those of who was forgotten are not applied.
        for number in range(40):
            again = shop.rate_item(f"u{number % 6}", f"i{number % 9}", 1 + number % 5, event_id=f"e{number}")
            assert (again.duplicate, again.applied) == (True, number % 6 != 5)
        with pytest.raises(EventReused):
            shop.rate_item("u0", "i0", 5, event_id="e0")
        # Decisions of then can be answered, once per item.
        assert shop.rate(decisions["waiting"], 3, event_id="answer").applied
        with pytest.raises(AlreadyRated):
            shop.rate(decisions["waiting"], 3, event_id="another")
        with pytest.raises(AlreadyRated):
            shop.rate(decisions["explained"], 3, decisions["explained"].item)
        with pytest.raises(UnknownDecision):
            shop.rate(decisions["waiting"].decision_id[:-1] + "x", 3)
    assert main(["verify", str(folder)]) == 0
    with Recommender(folder) as shop:
        assert shop.version().ratings == facts["version"]["ratings"] + 1


def test_reading_leaves_a_golden_log_as_it_is(golden: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, facts = golden
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for command in (
        ["verify", str(folder), "--decisions"],
        ["doctor", str(folder)],
        ["export", str(folder), str(tmp_path / "events.jsonl")],
    ):
        assert main(command) == 0, capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name in before} == before
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert sum(event["kind"] == "feedback" for event in events) == facts["version"]["ratings"]


def test_the_old_file_is_kept(golden: tuple[Path, Any]) -> None:
    folder, _ = golden
    before, known = (folder / LOG).read_bytes(), format_of(folder / LOG)
    with Recommender(folder):
        pass
    assert format_of(folder / LOG) == FORMAT
    kept = folder / f"log.format-{known}.sqlite"
    assert kept.exists() == (known != FORMAT)
    if known != FORMAT:
        assert kept.read_bytes() == before


def test_a_newer_format_is_refused_with_a_sentence(tmp_path: Path) -> None:
    import sqlite3

    with Recommender(tmp_path / "shop", scale=(1, 5)):
        pass
    connection = sqlite3.connect(tmp_path / "shop" / LOG)
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    with pytest.raises(InvalidInput, match="needs a newer albatross"):
        Recommender(tmp_path / "shop")


def test_a_damaged_log_of_an_old_format_is_not_migrated(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(GOLDEN / "format-1", folder)
    content = (folder / LOG).read_bytes()
    (folder / LOG).write_bytes(content.replace(b'"e30"', b'"e31"'))
    with pytest.raises(InvalidInput, match="damaged at event"):
        Recommender(folder)
    assert (folder / LOG).read_bytes() == content.replace(b'"e30"', b'"e31"')
