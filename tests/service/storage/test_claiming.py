"""Folders that are not the service's own: refused before anything in them is touched, and nothing is left behind."""

from pathlib import Path

import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.core.files import lock_file
from albatross.policies.item_mean import ItemMean
from albatross.service.http.hosting import found_in
from albatross.service.storage import folder as folder_module
from albatross.service.storage.folder import LOCK, LOG, FolderLock

FOREIGN = ("snapshots/model.npz", "snapshots/000000000000001.npz", ".download.partial", "backups/.old.unfinished/work", "notes.txt")


def foreign(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    return folder


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize("command", ["serve", "import"])
def test_a_folder_of_something_else_is_refused_and_left_as_it_is(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = foreign(tmp_path / "model", *FOREIGN)
    before = everything(folder)
    (tmp_path / "ratings.csv").write_text("user,item,rating\nann,tea,3\n")
    arguments = {"serve": ["--port", "0"], "import": [str(tmp_path / "ratings.csv")]}[command]
    assert main([command, str(folder), *arguments, "--scale", "1..5"]) == 2
    assert "there is no log.sqlite, but there is snapshots" in " ".join(capsys.readouterr().err.split())
    assert everything(folder) == before


def test_a_log_of_something_else_is_refused_and_the_folder_is_left_as_it_is(tmp_path: Path) -> None:
    folder = foreign(tmp_path / "model", *FOREIGN, LOG)
    before = everything(folder)
    with pytest.raises(InvalidInput, match="not a log of albatross"):
        Recommender(folder)
    assert everything(folder) == before


def test_only_our_own_unfinished_files_are_tidied_away(tmp_path: Path) -> None:
    folder = foreign(tmp_path / "shop", ".download.partial", "backups/.old.unfinished/work")
    for _ in range(2):
        Recommender(folder, scale=(1, 5), policy=ItemMean()).close()
        foreign(folder, "snapshots/model.npz", "snapshots/.model.npz.0123.partial")
    Recommender(folder).close()
    left = everything(folder)
    assert {".download.partial", "backups/.old.unfinished/work", "snapshots/model.npz", "snapshots/.model.npz.0123.partial"} <= left.keys()


def test_a_refused_start_leaves_no_new_file(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="scale"):
        Recommender(tmp_path / "empty")
    with pytest.raises(InvalidInput, match="oracle"):
        Recommender(tmp_path / "empty", scale=(1, 5), policy="oracle")
    assert not everything(tmp_path / "empty")
    Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()).close()
    (tmp_path / "shop" / LOCK).unlink()
    names = everything(tmp_path / "shop").keys()
    with pytest.raises(InvalidInput, match="scale"):
        Recommender(tmp_path / "shop", scale=(1, 7))
    assert everything(tmp_path / "shop").keys() == names


def test_a_lock_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    FolderLock(tmp_path).release(remove_new=True)
    assert (tmp_path / LOCK).exists()


def test_who_waited_for_a_lock_that_was_removed_locks_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has opened the file before the other process, which is refused, removes it."""
    refused = [FolderLock(tmp_path)]

    def late(file: object, wait: bool) -> bool:
        if refused:
            refused.pop().release(remove_new=True)
        return lock_file(file, wait)  # type: ignore[arg-type]

    monkeypatch.setattr(folder_module, "lock_file", late)
    second = FolderLock(tmp_path)
    assert (tmp_path / LOCK).exists()
    with pytest.raises(InvalidInput, match="is in use"):
        FolderLock(tmp_path)
    second.release()


def test_sub_folders_of_something_else_are_no_shops(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    foreign(tmp_path / "settled", "albatross.toml", "features.npy")
    foreign(tmp_path / "born", ".log.sqlite.unfinished", "mark", "lock", "keys.json", "keys.lock")
    foreign(tmp_path / "lost", "mark", "snapshots/000000000000001.npz")
    foreign(tmp_path / "model", *FOREIGN)
    foreign(tmp_path / "ssl", "openssl.cnf")
    before = everything(tmp_path)
    names, refused = found_in(tmp_path)
    assert names == ["born", "lost", "new", "settled"]
    assert list(refused) == ["model", "ssl"]
    assert "neither log.sqlite nor albatross.toml" in refused["ssl"]
    assert everything(tmp_path) == before


def test_a_shop_is_no_folder_of_shops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recommender(tmp_path / "shop", scale=(1, 5), policy=ItemMean()) as shop:
        shop.rate_item("ann", "tea", 3)
        shop.backup()
    before = everything(tmp_path)
    assert main(["serve", "--root", str(tmp_path / "shop"), "--port", "0"]) == 2
    assert "is a shop itself" in " ".join(capsys.readouterr().err.split())
    assert everything(tmp_path) == before
