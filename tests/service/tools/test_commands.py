"""Import, export, replay under another policy, forget, snapshot, verify and doctor, as a person types them."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.datasets.tabular import read_rows
from albatross.policies.item_mean import ItemMean
from albatross.service.api.errors import EventReused
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.storage import snapshots
from albatross.service.storage.folder import LOG
from albatross.service.tools.importing import import_rows

ROWS = [(f"u{number % 7}", f"i{number % 11}", 1 + number % 5) for number in range(60)]


def state(folder: Path) -> str:
    with Recommender(folder) as shop:
        return str(shop.version().state_id)


def csv(path: Path, rows: list[tuple[str, str, int]]) -> Path:
    path.write_text("user,item,rating\n" + "".join(f"{user},{item},{rating}\n" for user, item, rating in rows))
    return path


def imported(folder: Path, file: Path, *options: str) -> int:
    return main(["import", str(folder), str(file), *options])


def test_an_import_is_the_same_as_rating(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path / "imported", csv(tmp_path / "ratings.csv", ROWS), "--scale", "1..5") == 0
    assert "60 ratings are new" in capsys.readouterr().out
    with Recommender(tmp_path / "rated", scale=(1, 5)) as shop:
        for user, item, rating in ROWS:
            shop.rate_item(user, item, rating)
        expected = shop.version().state_id
    assert state(tmp_path / "imported") == expected
    with duckdb.connect() as connection:
        source, target = tmp_path / "ratings.csv", tmp_path / "ratings.parquet"
        connection.execute(f"COPY (SELECT * FROM read_csv('{source}')) TO '{target}' (FORMAT parquet)")
    assert imported(tmp_path / "parquet", tmp_path / "ratings.parquet", "--scale=1..5") == 0
    assert state(tmp_path / "parquet") == expected


def test_an_export_is_not_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its ratings would be learned again, and of its other events it would be said that the user is missing."""
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        shop.rate(shop.recommend("ann", candidates=["tea"]), 4)
        seq = shop.version().seq
    assert main(["export", str(tmp_path / "shop"), str(tmp_path / "events.parquet")]) == 0
    duckdb.execute(f"COPY (SELECT * EXCLUDE (candidates, exclude, shown) FROM '{tmp_path}/events.parquet') TO '{tmp_path}/events.csv'")
    for name in ("events.parquet", "events.csv"):
        assert imported(tmp_path / "shop", tmp_path / name) == 2
        assert "is an export of events" in " ".join(capsys.readouterr().err.split())
    with Recommender(tmp_path / "shop") as shop:
        assert shop.version().seq == seq
    (tmp_path / "own.csv").write_text("user,item,rating,kind\nann,tea,4,drink\n")  # a column of one's own may be called so
    assert imported(tmp_path / "shop", tmp_path / "own.csv") == 0


def test_an_import_that_was_interrupted_is_done_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts, file = tmp_path / "whole", tmp_path / "parts", csv(tmp_path / "ratings.csv", ROWS)
    imported(whole, file, "--scale", "1..5")
    monkeypatch.setattr("albatross.service.tools.importing.AT_ONCE", 10)

    def interrupted() -> Iterator[tuple[int, list[str | None] | None]]:
        yield from list(read_rows(file))[:35]
        raise KeyboardInterrupt

    with Engine(parts, Options(scale=(1, 5))) as engine:
        engine.wait_ready()
        with pytest.raises(KeyboardInterrupt):
            import_rows(engine, interrupted(), file.name)
    capsys.readouterr()
    assert imported(parts, file) == 0
    assert "30 ratings are new, 30 were there already" in capsys.readouterr().out
    assert state(parts) == state(whole)


def test_a_row_that_stands_twice_counts_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And both are known again when the file is."""
    file = csv(tmp_path / "ratings.csv", [*ROWS[:5], ROWS[0]])
    assert imported(tmp_path / "shop", file, "--scale", "1..5") == 0
    assert "6 ratings are new" in capsys.readouterr().out
    assert imported(tmp_path / "shop", file) == 0
    assert "0 ratings are new, 6 were there already" in capsys.readouterr().out


def test_bad_rows_are_refused_by_line_and_the_others_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text(
        'user,item,rating\nann,tea,4\nbob,tea\n"eve\n",tea,3\nann,mate,many\nann,,3\nann,mate,9\nann,mate,nan\nbob,"a ""b""",5\n'
    )
    assert imported(tmp_path / "shop", file, "--scale", "1..5") == 2
    told = capsys.readouterr()
    for line in (3, 4, 6, 7, 8, 9):
        assert f"line {line}:" in told.err
    assert "2 ratings are new" in told.out
    assert "6 of 8 rows were refused" in told.err
    with Recommender(tmp_path / "shop") as shop:
        assert shop.user("bob").ratings == 1
        assert sorted(item.item for item in shop.recommend("ann", n=9).items) == ['a "b"', "tea"]


@pytest.fixture
def lively(tmp_path: Path) -> Path:
    with Recommender(tmp_path / "shop", scale=(1, 5)) as shop:
        for number, (user, item, rating) in enumerate(ROWS):
            shop.rate_item(user, item, rating, event_id=f"e{number}")
        for number in range(10):
            decision = shop.recommend(f"u{number}", n=2, candidates=[f"i{number}", "i3", "i4"])
            shop.rate(decision, 3, decision.item, event_id=f"d{number}")
        shop.retire_item("i5")
    return tmp_path / "shop"


def test_exports_hold_every_event(lively: Path, tmp_path: Path) -> None:
    for kind in ("jsonl", "parquet"):
        assert main(["export", str(lively), str(tmp_path / f"events.{kind}")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    given = [(line["user"], line["item"], line["rating"]) for line in lines if line["kind"] == "feedback"]
    assert given[:60] == [(user, item, float(rating)) for user, item, rating in ROWS]
    table = duckdb.read_parquet(str(tmp_path / "events.parquet"))
    assert table.aggregate("count(*), sum(rating), max(seq)").fetchall()[0] == (
        len(lines),
        sum(line["rating"] for line in lines if line["kind"] == "feedback"),
        len(lines),
    )
    shown = table.filter("kind = 'decision'").project("shown[1].item, shown[1].propensity").fetchall()
    decided = [line["items"][0] for line in lines if line["kind"] == "decision"]
    assert shown == [(placed["item"], placed["propensity"]) for placed in decided]
    assert main(["export", str(lively), str(tmp_path / "events.txt")]) == 2
    assert not list(tmp_path.glob("*.unfinished"))


def test_a_warm_start_under_another_policy(lively: Path, tmp_path: Path) -> None:
    with Recommender(lively) as shop:
        waiting = shop.recommend("ann")
    before = (lively / LOG).read_bytes()
    assert main(["replay", str(lively), str(tmp_path / "other"), "--policy", "item-mean"]) == 0
    assert (lively / LOG).read_bytes() == before
    with Recommender(tmp_path / "other") as other, Recommender(tmp_path / "fresh", scale=(1, 5), policy=ItemMean()) as fresh:
        assert other.version().ratings == 70
        assert other.version().policy == "item-mean"
        for number, (user, item, rating) in enumerate(ROWS):
            fresh.rate_item(user, item, rating)
            assert other.rate_item(user, item, rating, event_id=f"e{number}").duplicate
        assert other.rate(waiting, 2.0).applied  # decisions of the old folder can still be answered
        with pytest.raises(EventReused):
            other.rate_item("u0", "i0", 5, event_id="e0")
    assert main(["replay", str(lively), str(tmp_path / "other"), "--policy", "pts"]) == 2
    assert main(["replay", str(lively), str(tmp_path / "never"), "--policy", "random"]) == 2
    assert main(["verify", str(tmp_path / "other"), "--decisions"]) == 0


def test_verify_and_doctor_are_content_with_a_sound_folder(lively: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", str(lively)]) == 0
    assert main(["verify", str(lively), "--decisions"]) == 0
    told = capsys.readouterr().out
    assert state(lively) in told
    assert "bit for bit" in told
    assert "10 decisions come out the same" in told
    assert main(["doctor", str(lively)]) == 0
    assert "nothing is wrong" in capsys.readouterr().out


def test_verify_and_doctor_find_what_is_wrong(lively: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = lively / LOG
    content = log.read_bytes()
    log.write_bytes(content.replace(b'"e30"', b'"e31"'))
    for verb in ("verify", "doctor"):
        assert main([verb, str(lively)]) == 2
        told = capsys.readouterr()
        assert "damaged at event 43" in told.out + told.err
    log.write_bytes(content)
    (path, _), *_ = snapshots.manifests(lively)[0]
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["doctor", str(lively)]) == 2
    assert "nothing is lost" in capsys.readouterr().out
    assert main(["verify", str(lively.parent)]) == 2


def test_lost_and_foreign_ids_are_found(lively: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table by which a repeated event is recognised must have exactly the ids of the events."""
    for change in (
        "DELETE FROM handles WHERE seq = 30",
        "UPDATE handles SET handle = x'00' WHERE seq = 30",
        "UPDATE handles SET seq = 2 WHERE seq = 30",
        "INSERT INTO handles SELECT x'00', seq, content FROM handles WHERE seq = 30",
    ):
        copy = (lively / LOG).read_bytes()
        with sqlite3.connect(lively / LOG) as connection:
            connection.execute(change)
        connection.close()
        assert main(["verify", str(lively)]) == 2, change
        assert "the log is damaged" in capsys.readouterr().err
        (lively / LOG).write_bytes(copy)
    assert main(["verify", str(lively)]) == 0


def test_forgetting_from_the_command_line(lively: Path, tmp_path: Path) -> None:
    assert main(["forget", str(lively), "u3"]) == 0
    assert main(["forget", str(lively), "u3"]) == 2
    assert main(["verify", str(lively), "--decisions"]) == 0
    assert main(["export", str(lively), str(tmp_path / "events.jsonl")]) == 0
    assert '"u3"' not in (tmp_path / "events.jsonl").read_text()
    assert main(["replay", str(lively), str(tmp_path / "other"), "--policy", "item-mean"]) == 0
    with Recommender(tmp_path / "other") as other, Recommender(lively) as shop:
        assert other.version().ratings == shop.version().ratings < 70
