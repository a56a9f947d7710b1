"""Machine code is kept between processes, and never outlives the source it came from."""

import os
import shutil
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

import albatross
from albatross.kernels import compiling
from albatross.kernels.compiling import NotCompiled, cache_root, only_loaded, program

TRIAL = """
from albatross import simulate
from albatross.environments.synthetic import Gaussian
from albatross.policies.random import Random
print(simulate(Random(), Gaussian(n_users=3, n_items=4, rank=2), horizon=5, seed=0).state_id)
"""

BEST = """
import numpy as np
from albatross.environments.synthetic import Gaussian
from albatross.environments.world import best_expected
from albatross.kernels.compiling import program
print(program(best_expected)(Gaussian(n_users=3, n_items=4, rank=2).world(0), 0))
"""


def run(code: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "ALBATROSS_CACHE": str(cache), **environment}
    finished = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished


def test_the_second_process_does_not_compile(tmp_path: Path) -> None:
    first, second = run(TRIAL, tmp_path), run(TRIAL, tmp_path)
    assert "compiling random (choose)" in first.stderr
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_an_edit_to_a_function_called_from_another_file_is_noticed(tmp_path: Path) -> None:
    """Numba alone would look at the file of the caller and run the old code."""
    source = tmp_path / "source"
    shutil.copytree(Path(albatross.__file__).parent, source / "albatross", ignore=shutil.ignore_patterns("__pycache__"))
    before = run(BEST, tmp_path / "cache", PYTHONPATH=str(source))
    assert "compiling" in before.stderr
    callee = source / "albatross" / "kernels" / "linear.py"
    head, _, body = callee.read_text().partition("def dot(")
    callee.write_text(head + "def dot(" + body.replace("return total", "return total + 1000.0"))
    after = run(BEST, tmp_path / "cache", PYTHONPATH=str(source))
    assert float(after.stdout) == pytest.approx(float(before.stdout) + 1000.0)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of three files, in place of ours, of which nothing is noted on disk yet."""
    for name in ("kernels/small.py", "policies/mine.py", "policies/other.py"):
        file = tmp_path / "package" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("answer = 1\n")
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(compiling, "cache_root", lambda: tmp_path)
    return tmp_path / "package"


@pytest.mark.parametrize(
    ("edited", "compiled_anew"), [("kernels/small.py", True), ("policies/mine.py", True), ("policies/other.py", False)]
)
def test_what_an_edit_compiles_anew(package: Path, edited: str, compiled_anew: bool) -> None:
    """Every edit to what a kernel does, or the policy itself, but no edit to another policy, to comments and docstrings."""
    fingerprint = compiling._fingerprint.__wrapped__
    before = fingerprint(package / "policies" / "mine.py")
    assert fingerprint(package / "policies" / "mine.py") == before
    (package / edited).write_text('"""What it says."""\n\nanswer = (1)  # the same\n"""And why."""\n')
    assert fingerprint(package / "policies" / "mine.py") == before
    (package / edited).write_text("answer = 2\n")
    assert (fingerprint(package / "policies" / "mine.py") != before) is compiled_anew


def test_a_damaged_note_of_what_the_source_says_is_replaced(package: Path, tmp_path: Path) -> None:
    before = compiling._fingerprint.__wrapped__()
    (note,) = tmp_path.glob("*.syntax")
    assert note.read_text() == before
    note.write_bytes(b"\xff half")
    assert compiling._fingerprint.__wrapped__() == before
    assert note.read_text() == before


class Empty(NamedTuple):
    nothing: NDArray[np.float64]


def doubled(number: float) -> float:
    return 2 * number


def test_a_program_is_made_once_per_type_of_state_and_leaves_the_settings_of_numba_alone() -> None:
    settings: Any = numba.config
    before = settings.CACHE_DIR
    assert program(doubled) is program(doubled)
    assert program(doubled) is not program(doubled, Empty)
    assert program(doubled)(4.0) == 8.0
    assert before == settings.CACHE_DIR


def test_what_was_typed_at_a_prompt_compiles_without_being_kept() -> None:
    prompt = types.ModuleType("a_prompt")
    exec("def tripled(number):\n    return 3 * number", vars(prompt))
    assert program(prompt.tripled)(2.0) == 6.0


def test_an_unusable_cache_folder_is_replaced_by_a_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    obstacle = tmp_path / "file"
    obstacle.write_text("not a folder")
    monkeypatch.setenv("ALBATROSS_CACHE", str(obstacle))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = cache_root.__wrapped__()
    assert folder.parent == tmp_path
    assert folder.is_dir()
    monkeypatch.setenv("ALBATROSS_CACHE", str(tmp_path / "fresh"))
    assert cache_root.__wrapped__() == tmp_path / "fresh" / "kernels"


def test_two_threads_do_not_change_the_folder_for_each_other() -> None:
    """As the engines of several shops in one process do, each compiling in its own thread."""
    settings: Any = numba.config
    entered, ending, seen = threading.Event(), threading.Event(), []

    def other() -> None:
        with compiling._cache_folder("other"):
            entered.set()
            ending.wait()
            seen.append(Path(settings.CACHE_DIR).name)

    thread = threading.Thread(target=other)
    with compiling._cache_folder("first"):
        thread.start()
        entered.wait(0.2)  # it does not come in before this one has left
    ending.set()
    thread.join()
    assert seen == ["other"]


def test_what_is_only_loaded_is_not_compiled() -> None:
    def double(number: float) -> float:
        return 2.0 * number

    with only_loaded(), pytest.raises(NotCompiled, match="double is neither loaded nor on disk"):
        program(double)(1.0)
    assert program(double)(1.0) == 2.0
    with only_loaded():
        assert program(double)(2.0) == 4.0
