"""A policy from a file, in an embedded recommender, whose source changes under its folder."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("skeleton")

SKELETON = Path(__file__).parents[2] / "docs" / "skeleton.py"
BEGIN = """
from albatross import Recommender
with Recommender("shop", policy="mine.py:Skeleton", scale=(1, 5)) as shop:
    shop.rate(shop.recommend("ann", candidates=["tea", "coffee"]), 4.0)
"""
GO_ON = """
from albatross import Recommender
with Recommender("shop"{options}) as shop:
    print(shop.recommend("ann").user_ratings)
"""


def test_a_changed_source_is_refused_until_it_is_accepted(tmp_path: Path) -> None:
    def run(code: str) -> subprocess.CompletedProcess[str]:
        """In its own process: one that has loaded the old source could continue with it."""
        return subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)

    shutil.copy(SKELETON, tmp_path / "mine.py")
    began = run(BEGIN)
    assert began.returncode == 0, began.stderr
    (tmp_path / "mine.py").write_text(SKELETON.read_text() + "\n# another thought\n")
    assert "accept_changed_policy=True" in run(GO_ON.format(options="")).stderr
    accepted = run(GO_ON.format(options=", accept_changed_policy=True"))
    assert accepted.stdout == "1\n", accepted.stderr
    assert run(GO_ON.format(options="")).stdout == "1\n", "accepted once, accepted from then on"
