"""A folder that is being made when the process is killed: the next start makes it, or finds it whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NURSERY = """
import os, signal, sys
from pathlib import Path
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.policies.item_mean import ItemMean

root = Path(sys.argv[1])
OPTIONS = Options(scale=(1, 5), policy=ItemMean())
TOUCHING = ("open", "os.mkdir", "os.rename", "os.remove", "sqlite3.connect")

def born_and_killed(folder, cut):
    touched = 0
    def count(event, arguments):
        nonlocal touched
        if event in TOUCHING and any(str(folder) in str(argument) for argument in arguments):
            touched += 1
            if touched == cut:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)
    Engine.__init__.__globals__["threading"].Thread.start = lambda self: None  # the first milliseconds, without the owner thread
    Engine(folder, OPTIONS)

def opened(folder):
    with Engine(folder, OPTIONS) as engine:
        engine.wait_ready()

def in_child(task, *arguments):
    child = os.fork()
    if child == 0:
        try:
            task(*arguments)
            code = 0
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            code = 1
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

kills, cut = 0, 0
while True:
    cut += 1
    folder = root / f"shop-{cut}"
    killed = in_child(born_and_killed, folder, cut) == -signal.SIGKILL
    kills += killed
    if in_child(opened, folder) != 0:
        print("cannot be opened after cut", cut, sorted(path.name for path in folder.iterdir()), flush=True)
        sys.exit(1)
    if not killed:
        break
print(kills, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_kill_at_any_moment_of_the_birth_does_no_harm(tmp_path: Path) -> None:
    """The process is killed at each operation on files in turn."""
    run = subprocess.run([sys.executable, "-c", NURSERY, str(tmp_path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert int(run.stdout.split()[-1]) >= 8  # there were that many moments
