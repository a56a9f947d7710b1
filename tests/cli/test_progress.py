"""A progress bar on a terminal, and nowhere else."""

import subprocess
import sys
from io import StringIO

import pytest

from albatross.cli.progress import progress_bar


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_where_nobody_watches_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", StringIO())
    with progress_bar(10) as progress:
        assert progress is None


def test_a_terminal_is_shown_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(2_000, "rows") as progress:
        assert progress is not None
        progress(500)
        progress(1_000)
    assert "1,500 of 2,000 rows" in terminal.getvalue()


def test_a_command_of_the_service_loads_nothing_of_studies() -> None:
    code = "import sys, albatross.cli.service.folder, albatross.cli.service.importing; print('albatross.studies' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
