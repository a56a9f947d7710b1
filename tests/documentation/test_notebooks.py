"""The notebooks run, and print what they are shown to print."""

from pathlib import Path

import pytest

from documentation.notebooks import NOTEBOOKS, printed, read, run

pytestmark = pytest.mark.xdist_group("documentation-notebooks")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_it_shows(path: Path, tmp_path: Path) -> None:
    """After a change that means to change it: `make notebooks`."""
    again = run(path, tmp_path)
    assert printed(again) == printed(read(path))
    for cell in again.cells:
        if "plt.show" in cell.source:
            assert any("image/png" in output.get("data", {}) for output in cell.outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_tells_nothing_of_the_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for telling in ("/tmp", "/home", "/root", "/work", "\\\\Users", "site-packages", '"stderr"', '"execution"'):
        assert telling not in text, f"{path.name} has {telling}"
