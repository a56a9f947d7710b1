"""What files say is read in several threads at once: engines of one process open in their own threads."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import albatross
from albatross.kernels.building.sources import syntax_of


@pytest.fixture
def interrupted() -> Iterator[None]:
    """Python code runs, and threads change, in the midst of parsing."""

    def work(phase: str, details: dict[str, int]) -> None:
        sum(range(200))

    before = gc.get_threshold()
    gc.set_threshold(50)
    gc.callbacks.append(work)
    yield
    gc.callbacks.remove(work)
    gc.set_threshold(*before)


@pytest.mark.usefixtures("interrupted")
def test_two_threads_read_at_once() -> None:
    texts = [file.read_bytes() for file in sorted(Path(albatross.__file__).parent.joinpath("kernels").rglob("*.py"))]
    found: list[list[bytes]] = []

    def read() -> None:
        found.append([syntax_of(text) for text in texts])

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] == found[1]
