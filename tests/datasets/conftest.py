"""Small archives in the official formats, in temporary folders."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from albatross import datasets
from albatross.core.errors import InvalidInput
from albatross.core.ratings import RatingTable
from albatross.datasets import archive

Zipped = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that ALBATROSS_DATA names; the cache is an empty one beside it."""
    path = tmp_path / "downloads"
    path.mkdir()
    monkeypatch.setenv("ALBATROSS_DATA", str(path))
    monkeypatch.setenv("ALBATROSS_CACHE", str(tmp_path / "cache"))
    return path


@pytest.fixture
def zipped(folder: Path) -> Zipped:
    """Writes an archive into that folder: its name, and the content of each member."""

    def write(name: str, members: dict[str, bytes | str]) -> Path:
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as target:
            for member, content in members.items():
                target.writestr(member, content.encode("latin-1") if isinstance(content, str) else content)
        return folder / name

    return write


@pytest.fixture
def real() -> Callable[..., RatingTable]:
    """Loads a real data set; skips the test where the copy whose counts are known is not here."""

    def load(name: str, file: str, **parameters: int | None) -> RatingTable:
        if not os.environ.get("ALBATROSS_DATA"):
            pytest.skip("ALBATROSS_DATA is not set")
        dataset = datasets.create(name, parameters)
        path = archive.find(dataset.needed()[0])
        if path is None or path.name != file:
            pytest.skip(f"{file} is not in ALBATROSS_DATA")
        return dataset.load()

    return load


@pytest.fixture
def refused() -> Callable[..., str]:
    """Loads what must be refused, and returns the message."""

    def load(dataset: datasets.DataSet) -> str:
        with pytest.raises(InvalidInput) as caught:
            dataset.load()
        return str(caught.value)

    return load
