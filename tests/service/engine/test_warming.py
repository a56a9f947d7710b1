"""Before the first request everything is compiled, by two processes if they can; and nothing depends on the second."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from albatross.policies.item_mean import ItemMean
from albatross.kernels.building import beside
from albatross.service.engine import warming
from albatross.service.engine.learned.options import Options, new_genesis
warming.usable_cores = lambda: 2
{change}
warming.warm(new_genesis(Options(policy=ItemMean(), scale=(1.0, 5.0))))
"""


@pytest.mark.parametrize(
    ("change", "compiled_here"),
    [
        ("", False),
        ("beside.BEGIN = 'raise SystemExit(3)'", True),
        ("warming.usable_cores = lambda: 1", True),
    ],
    ids=["by two processes", "the other one dies", "one core"],
)
def test_who_compiles_what_learns(tmp_path: Path, change: str, compiled_here: bool) -> None:
    script = SCRIPT.format(change=change)
    environment = os.environ | {"ALBATROSS_CACHE": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True).stderr for _ in range(2)
    )
    assert "(choose" in first
    assert ("(learn)" in first) is compiled_here
    assert second == ""  # whoever compiled it
