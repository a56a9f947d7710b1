"""Studies are a library: the caller provides the terminal and the drawing."""

import subprocess
import sys

CODE = """
import importlib, pkgutil, sys
from albatross import studies
for module in pkgutil.walk_packages(studies.__path__, "albatross.studies."):
    importlib.import_module(module.name)
assert "albatross.studies.report.paper" in sys.modules
print([name for name in ("rich", "matplotlib", "cyclopts", "ray", "duckdb", "albatross.figures", "albatross.cli") if name in sys.modules])
"""


def test_no_part_of_studies_loads_a_terminal_or_draws() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
