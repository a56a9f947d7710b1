"""The wheel that `make dist` builds, tried without a package index."""

import os
import subprocess
from pathlib import Path

import numba
import pytest

from distribution import SMOKE, build, check_metadata, environment


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    check_metadata(wheel)


def test_the_wheel_runs_with_an_empty_home(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    (site / "present.pth").write_text(str(Path(numba.__file__).parents[1]))  # what it needs, from the environment of the tests
    variables = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": ""}
    command = [str(python.with_name("albatross")), *SMOKE, "--policy", "item-mean"]
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "item-mean" in done.stdout
    where = subprocess.run([python, "-c", "import albatross; print(albatross.__file__)"], env=variables, capture_output=True, text=True)
    assert str(site) in where.stdout
