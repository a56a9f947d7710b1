"""`albatross data`, where there is no data."""

from pathlib import Path

import pytest

from albatross.cli import main


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALBATROSS_DATA", str(tmp_path))
    monkeypatch.setenv("ALBATROSS_CACHE", str(tmp_path / "cache"))


def test_what_is_not_here_is_listed_without_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    output = capsys.readouterr().out
    for name in (
        "movielens-100k",
        "movielens-1m",
        "movielens-10m",
        "movielens-25m",
        "movielens-32m",
        "jester-1",
        "jester-2",
        "book-crossing",
    ):
        assert name in output
    assert "ml-100k.zip is not here" in output
    assert "movielens-100k: get it with: albatross data fetch movielens-100k" in output


def test_where_a_missing_archive_belongs_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "path", "movielens-100k"]) == 2
    message = capsys.readouterr().err
    assert "https://files.grouplens.org/datasets/movielens/ml-100k.zip" in message
    assert str(tmp_path) in message


def test_a_data_set_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "fetch", "movielens-10k"]) == 2
    assert "Did you mean 'movielens-100k'" in capsys.readouterr().err
