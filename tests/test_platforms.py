"""Other systems, simulated: without what Linux has and they lack. The whole suite does not run there; see docs/reference/platforms.md."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from live import Live

pytestmark = pytest.mark.xdist_group("platforms")

ELSEWHERE = """
# Their own ways to do without are not ours to try.
import asyncio, fcntl, getpass, joblib, matplotlib, multiprocessing, numba, os, platformdirs, sqlite3, subprocess, sys, types

def locking(descriptor, mode, length):
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if mode == 1 else fcntl.LOCK_NB))

sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_LOCK=1, LK_NBLCK=2)
for name in ("fcntl", "resource", "uvloop", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("sysconf", "fdatasync", "getuid", "geteuid", "fork", "register_at_fork", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
"""
"""What is missing on Windows; on macOS less is. A lock is made of what there is."""


def elsewhere(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", ELSEWHERE + code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_workbench_does_without_them(tmp_path: Path) -> None:
    code = """
from albatross.cli import main
from albatross.core.memory import memory_limit
assert main(["run", "--policy", "random", "--dataset", "gaussian", "--horizon", "100", "--seeds", "2", "--jobs", "1",
             "--json", "curves.json", "--figure", "curves.png"]) == 0
assert memory_limit() == sys.maxsize
"""
    assert "random" in elsewhere(code, tmp_path)
    assert (tmp_path / "curves.json").stat().st_size > 0


def test_a_folder_is_locked_without_them(tmp_path: Path) -> None:
    code = """
from albatross import Recommender
with Recommender("shop", scale=(1, 5), policy="item-mean") as shop:
    assert shop.rate_item("ann", "tea", 4.0).applied
    try:
        Recommender("shop")
    except Exception as error:
        print(error)
with Recommender("shop") as shop:
    print(shop.user("ann").ratings)
"""
    refused, ratings = elsewhere(code, tmp_path).splitlines()
    assert "shop" in refused
    assert ratings == "1"


def test_it_serves_without_them(tmp_path: Path) -> None:
    with Live(tmp_path / "shop", "--policy", "item-mean", before=ELSEWHERE) as live:
        assert live.post("/v1/recommend", {"user": "ann", "candidates": ["tea", "mate"]}).status == 200
        assert live.post("/v1/feedback", {"event_id": "1", "user": "ann", "item": "tea", "rating": 4}).json["applied"]
        assert live.kill(signal.SIGTERM) == 0
