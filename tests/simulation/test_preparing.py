"""The first trial of a policy is compiled by two processes. That nothing depends on the second is tested with the service."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
from albatross import simulate
from albatross.environments.synthetic import Gaussian
from albatross.policies.item_mean import ItemMean
from albatross.simulation import preparing
preparing.usable_cores = lambda: 2
preparing.prepare(ItemMean())
print(simulate(ItemMean(), Gaussian(n_users=30, n_items=40), horizon=50).state_id)
"""


def test_another_process_compiles_what_learns(tmp_path: Path) -> None:
    environment = os.environ | {"ALBATROSS_CACHE": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True) for _ in range(2)
    )
    assert first.stderr.count("(choose)") == 1
    assert "(learn)" not in first.stderr
    assert second.stderr == ""
    assert first.stdout == second.stdout
