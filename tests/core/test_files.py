"""Files that are whole or not there."""

from pathlib import Path

import pytest

from albatross.core.files import whole_file


def test_writing_stopped_halfway_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def stopped() -> None:
        with whole_file(path) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_takes_the_place_of_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")
    with whole_file(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
