"""Keeps a server running that is killed all the time: `python -m faults.nursery SCRATCH FOLDER`, or `SCRATCH ADDRESS SNAPSHOTS`.

Starting Python and loading compiled code takes a second, in which nothing can go wrong with the data. So one process does that once
and forks a server for each life; the server is the one that `albatross serve` runs. The listening socket outlives them all, so clients
that connect between two lives wait for the next.

Takes a word a line and answers with a line: `start`, `kill` (by SIGKILL), `stop` (by SIGTERM).
"""

import gc
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

from albatross.service.api.requests import Feedback, Recommend
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.http.logs import configure_log
from albatross.service.http.process import ListenAddress, serve
from albatross.service.storage.home import Home, home_of

SCALE = (1.0, 5.0)
EVENTS = {"click": 1.0, "purchase": 5.0}
SNAPSHOT_EVERY = 500
"""Often, so that many lives end while one is being written."""


def main(home: Home, scratch: Path) -> None:
    _load_compiled_code()
    gc.freeze()  # what was loaded is shared with every life, and not copied because a collector looked at it
    with ListenAddress(port=0).listen() as listening:
        print(listening.getsockname()[1], flush=True)
        life = 0
        for word in sys.stdin:
            if word.strip() == "start":
                life = os.fork()
                if life == 0:
                    _live(home, scratch, listening)
                print(life, flush=True)
            else:
                os.kill(life, signal.SIGKILL if word.strip() == "kill" else signal.SIGTERM)
                _, status = os.waitpid(life, 0)
                print(os.waitstatus_to_exitcode(status), flush=True)


def _load_compiled_code() -> None:
    with tempfile.TemporaryDirectory() as scratch, Engine(Path(scratch) / "warm", Options(scale=SCALE, events=EVENTS)) as engine:
        engine.wait_ready()
        engine.ask(Feedback("warm", 3.0, user="warm", item="warm"))
        engine.ask(Recommend("warm"))


def _live(home: Home, scratch: Path, listening: socket.socket) -> None:
    code = 1
    try:
        sys.stdin.close()
        with (scratch / "lives.log").open("a") as log:
            configure_log("json", log)
            serve(home, Options(scale=SCALE, events=EVENTS, snapshot_every=SNAPSHOT_EVERY), ListenAddress(), listening)
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    main(home_of(sys.argv[2], *map(Path, sys.argv[3:])), Path(sys.argv[1]))
