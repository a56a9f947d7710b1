"""Files that are whole or not there."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from albatross.core.files import lock_file, whole_file


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


def test_a_file_gets_its_name_when_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synchronised first, then renamed, then the folder: otherwise a power failure may leave an empty file under the old name."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("there is no /proc to see which file is synchronised")
    happened: list[str] = []

    def noted(file: int) -> None:
        name = Path(f"/proc/self/fd/{file}").readlink()
        happened.append("folder" if name == tmp_path else f"{name.suffix} of {len(name.read_bytes())} bytes")
        happened.append("named" if (tmp_path / "out.json").exists() else "not yet named")

    monkeypatch.setattr("os.fsync", noted)
    with whole_file(tmp_path / "out.json") as partial:
        partial.write_text("whole")
    assert happened == [".partial of 5 bytes", "not yet named", "folder", "named"]


def test_without_fcntl_the_lock_of_windows_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that has neither is told so by the import error, and nothing is silently left unlocked."""
    locked: set[int] = set()

    def locking(file: int, mode: str, length: int) -> None:
        name = (tmp_path / "lock").stat().st_ino
        if name in locked:
            raise OSError("in use")
        locked.add(name)

    windows = SimpleNamespace(locking=locking, LK_LOCK="wait", LK_NBLCK="at once")
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    with (tmp_path / "lock").open("a+") as first, (tmp_path / "lock").open("a+") as second:
        assert lock_file(first, wait=False)
        assert not lock_file(second, wait=False)
        monkeypatch.setitem(sys.modules, "msvcrt", None)
        with pytest.raises(ImportError):
            lock_file(second, wait=False)


def test_a_locked_file_is_locked_for_others(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("a+") as first, (tmp_path / "lock").open("a+") as second:
        assert lock_file(first, wait=False)
        assert not lock_file(second, wait=False)
    with (tmp_path / "lock").open("a+") as third:
        assert lock_file(third, wait=False)
