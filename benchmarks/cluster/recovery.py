"""How long the users of a killed shard wait, and what pruning its payloads takes: `python -m benchmarks.cluster.recovery 100000`.

A cluster of two shards and one front on this machine, with so many events on each shard. To be measured on a machine that does nothing
else.
"""

import asyncio
import contextlib
import sys
import tempfile
import threading
import time
from pathlib import Path

from albatross.policies.alb import ALB
from albatross.service.cluster import running
from albatross.service.cluster.front import free_port
from albatross.service.cluster.pruning import prune
from albatross.service.engine.learned.options import Options
from albatross.service.tools.private_postgres import PrivatePostgres
from benchmarks.cluster.against_one import RANK, SHARDS, command, recover, wait_ready


async def run(address: str, scratch: Path, events: int) -> None:
    held, port = free_port("127.0.0.1")
    words = ("cluster", "start", address, "--fronts", "1", "--port", str(port), "--snapshots", str(scratch))
    with held, command(scratch, *words):
        await wait_ready(port)
        await recover(address, port, events)
        began = time.perf_counter()
        done = await asyncio.to_thread(prune, address, scratch, threading.Event().wait)
        seconds = time.perf_counter() - began
        print(f"\n{done.payloads:,} payloads are pruned in {seconds:.1f} s: {done.before / 1e6:,.1f} MB become {done.after / 1e6:,.1f} MB")
        await wait_ready(port)
        await recover(address, port, 0)


def main(events: int) -> None:
    with contextlib.ExitStack() as stack:
        scratch, server = Path(stack.enter_context(tempfile.TemporaryDirectory())), stack.enter_context(PrivatePostgres())
        address = server.create_database("several")
        running.make(address, SHARDS, Options(policy=ALB(rank=RANK), scale=(1, 5)))
        asyncio.run(run(address, scratch, events))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
