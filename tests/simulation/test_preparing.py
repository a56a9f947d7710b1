"""The first trial of a policy is compiled by two processes. A test of the service shows that nothing depends on the second."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from albatross import simulate
from albatross.environments.synthetic import Gaussian
from albatross.environments.further import Late
from albatross.policies.item_mean import ItemMean
from albatross.simulation import preparing
preparing.usable_cores = lambda: 2
world = {world}
preparing.prepare(ItemMean(), world)
print("prepared", file=sys.stderr)
print(simulate(ItemMean(), world, horizon=50).state_id)
"""


@pytest.mark.parametrize(
    ("world", "chooser", "loop"),
    [
        ("Gaussian(n_users=30, n_items=40)", "(choose)", "(live)"),
        ("Late(n_users=30, n_items=40, delay=5)", "(choose_waiting)", "(live_late)"),
    ],
    ids=["at once", "late ratings"],
)
def test_another_process_compiles_what_learns(tmp_path: Path, world: str, chooser: str, loop: str) -> None:
    """Meanwhile all else that the trial needs is compiled here, and nothing that it does not need."""
    environment, script = os.environ | {"ALBATROSS_CACHE": str(tmp_path)}, SCRIPT.format(world=world)
    first, second = (
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True) for _ in range(2)
    )
    before, _, after = first.stderr.partition("prepared\n")
    assert [before.count(name) for name in ("(choose)", "(choose_waiting)", "(live)", "(live_late)", "(learn)")] == [
        name in (chooser, loop) for name in ("(choose)", "(choose_waiting)", "(live)", "(live_late)", "(learn)")
    ]
    assert after == ""
    assert second.stderr == "prepared\n"
    assert first.stdout == second.stdout
