"""The engine's part of a request, of each kind, on a machine that others use: `python -m benchmarks.serving.groups`.

Groups of 16 in this process, without sockets, a second thread and synchronisation of the disk: what these cost depends on what else the
machine does. Of 500 groups the 5th percentile counts, in processor time. So two versions of the code can be compared where nothing else
can be measured. Ratings and items are those of `benchmarks.serving.service`.
"""

import gc
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from albatross.policies.alb import ALB
from albatross.service.api.requests import Feedback, FeedbackBatch, Recommend, Request, UpsertItem, UpsertItems
from albatross.service.api.rules import Where
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.tickets import Ticket
from albatross.service.storage import mark
from albatross.service.storage.sqlite.log import SQLiteLog
from benchmarks import machine
from benchmarks.serving.servers import EVENTS, IN_FLIGHT, ITEMS, RANK, USERS

GROUPS, WARM_UP_GROUPS = 500, 100
KINDS = ("recommendation", "… with where", "… with reasons", "… with explain", "feedback", "… by an event")
WHERE = Where(attribute="category", is_="c3")


class Answered(Ticket):
    """A ticket as HTTP has it."""

    becomes_json = True


def ticket(kind: str, number: int) -> Ticket:
    user, item, name = f"u{number * 7919 % USERS}", f"i{number * 104_729 % ITEMS}", f"{kind}-{number}"
    requests: dict[str, Request[Any]] = {
        "recommendation": Recommend(user),
        "… with where": Recommend(user, where=WHERE),
        "… with reasons": Recommend(user, explain="reasons"),
        "… with explain": Recommend(user, explain=True),
        "feedback": Feedback(name, 1.0 + number % 5, user=user, item=item),
        "… by an event": Feedback(name, None, user=user, item=item, event=EVENTS[number % len(EVENTS)]),
    }
    return Answered(requests[kind], lambda _: None)


def fill(engine: Engine) -> None:
    for start in range(0, 2 * ITEMS, 1_000):
        numbers = range(start, min(start + 1_000, 2 * ITEMS))
        rated = [Feedback(f"fill-{n}", 1.0 + n % 5, user=f"u{n * 7919 % USERS}", item=f"i{n * 104_729 % ITEMS}") for n in numbers]
        engine.ask(FeedbackBatch(rated))
    engine.ask(UpsertItems([UpsertItem(f"i{item}", {"category": f"c{item % 10}"}) for item in range(ITEMS)]))


def seconds(engine: Engine, kind: str) -> float:
    groups = [[ticket(kind, group * IN_FLIGHT + place) for place in range(IN_FLIGHT)] for group in range(WARM_UP_GROUPS + GROUPS)]
    spent: list[float] = []
    for group in groups:
        began = time.thread_time()
        engine._serve(group)
        spent.append(time.thread_time() - began)
    if any(one.error is not None for group in groups for one in group):
        raise RuntimeError("a request was refused")
    return float(np.percentile(spent[WARM_UP_GROUPS:], 5)) / IN_FLIGHT


def main() -> None:
    print(*machine.describe(), "", "µs a request:", sep="\n")
    mark.__dict__["synchronise"] = lambda _: None
    options = Options(scale=(1, 5), policy=ALB(rank=RANK), events={name: float(worth) for worth, name in enumerate(EVENTS, 1)})
    with tempfile.TemporaryDirectory() as folder, Engine(Path(folder) / "groups", options) as engine:
        engine.wait_ready()
        assert isinstance(engine._store, SQLiteLog)
        engine._store._connection.execute("PRAGMA synchronous = OFF").fetchall()
        fill(engine)
        gc.disable()
        for kind in KINDS:
            print(f"  {kind}: {seconds(engine, kind) * 1e6:.1f}")


if __name__ == "__main__":
    main()
