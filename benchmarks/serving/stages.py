"""Where the processor time of a request goes, stage by stage: `python -m benchmarks.serving.stages`.

The network's part without sockets and the engine's part without a second thread, each in this process, in groups as they come from 16
clients; ALB on the sizes of `benchmarks.serving.service`. What that measures above the sum of these is the system's: sockets, the turns
of two threads, and caches that are cold after a wait for the disk. Every stage is measured without those inside it. The watch itself
takes a part of a microsecond for each call.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from albatross.policies.alb import ALB
from albatross.service.api.answers import Accepted, Decision, Readiness, ShownItem
from albatross.service.api.requests import Feedback, FeedbackBatch, Recommend
from albatross.service.engine import engine as engine_module
from albatross.service.engine import group as group_module
from albatross.service.engine.deciding import together
from albatross.service.engine.engine import Engine
from albatross.service.engine.group import Group
from albatross.service.engine.handling import rating
from albatross.service.engine.learned.model import Model
from albatross.service.engine.learned.options import Options
from albatross.service.engine.tickets import Ticket
from albatross.service.http import application as application_module
from albatross.service.http.access.admission import Admission
from albatross.service.http.access.keys import Keys
from albatross.service.http.access.names import LOOPBACK
from albatross.service.http.application import Application
from albatross.service.http.bridge import Bridge
from albatross.service.http.wire.connection import Connection
from albatross.service.http.wire.crowd import Crowd
from albatross.service.http.wire.receiver import Receiver
from albatross.service.storage.mark import Mark
from albatross.service.storage.sqlite.log import SQLiteLog
from benchmarks import machine
from benchmarks.serving.servers import IN_FLIGHT, ITEMS, RANK, USERS, Ask, feedback, recommend

GROUPS, WARM_UP_GROUPS = 400, 100

NETWORK: list[tuple[str, Any, str]] = [
    ("head", Receiver, "recall"),
    ("admission", Application, "open"),
    ("JSON in", application_module, "read_as"),
    ("handing over", Bridge, "_hand_over"),
    ("JSON out", application_module, "encode"),
    ("answer, turns of the connection", Connection, "send"),
    ("the rest of the network's part", Connection, "data_received"),
    ("the rest of the network's part", Application, "_settle"),
]
ENGINE: list[tuple[str, Any, str]] = [
    ("checking", rating, "check_feedback"),
    ("the decision's stream", together, "stream_name"),
    ("choosing, compiled", together, "choose_together"),
    ("deciding, but for that", group_module, "decide_together"),
    ("the name of the decision, the answer", group_module, "decision_of"),
    ("handles: hashing", group_module, "handles_asked"),
    ("handles: looking for them", SQLiteLog, "find_all"),
    ("handles: their sum", group_module, "summed"),
    ("JSON of the log", group_module, "encode"),
    ("SQLite, chain included", SQLiteLog, "append"),
    ("the mark", Mark, "set"),
    ("folding", Model, "fold_all"),
    ("learning, series, ledger", Model, "learn"),
    ("the handler, but for that", engine_module, "WRITING"),
    ("the group, but for that", Group, "run"),
    ("queue and tickets", Engine, "_serve"),
]


class Watch:
    """Seconds of each stage, without those of the stages inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside: list[float] = []

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **more: Any) -> Any:
            self._inside.append(0.0)
            began = time.thread_time()
            try:
                return function(*arguments, **more)
            finally:
                spent = time.thread_time() - began
                self.seconds[stage] = self.seconds.get(stage, 0.0) + spent - self._inside.pop()
                if self._inside:
                    self._inside[-1] += spent

        return timed

    @contextlib.contextmanager
    def watching(self, stages: Sequence[tuple[str, Any, str]]) -> Iterator[None]:
        before = [(owner, name, getattr(owner, name)) for _, owner, name in stages]
        try:
            for stage, owner, name in stages:
                function = getattr(owner, name)
                if isinstance(function, dict):
                    setattr(owner, name, {kind: self.around(stage, handler) for kind, handler in function.items()})
                else:
                    setattr(owner, name, self.around(stage, function))
            yield
        finally:
            for owner, name, function in before:
                setattr(owner, name, function)


class Prompt:
    """An engine that answers at once."""

    readiness = Readiness(True, "ready", 1, 1, 0)
    congested = False
    capacity = 1_000_000
    withheld = 0
    breadth = 1

    def put(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        for ticket in tickets:
            shown = [ShownItem("i123", 1, 3.123456789, 3.0123456789, 0.11111111, 0.95002941)]
            rated = isinstance(ticket.request, Feedback)
            ticket.answer = Accepted(12_345, True, False, 12_360) if rated else Decision("12345-abcdef01", "u1", "alb", 12_344, shown, 12)
        tickets[0].tell(tickets)
        return []


class Wire(asyncio.Transport):
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """It is sent."""


def network(ask: Ask) -> dict[str, float]:
    watch = Watch()

    async def play(folder: Path) -> None:
        engine, crowd, loop = Prompt(), Crowd(), asyncio.get_running_loop()
        admission = Admission(engine, Keys(folder), 4_096, LOOPBACK, (), key_needed=False)
        application = Application(Bridge(engine, loop), admission, crowd, (1.0, 5.0))
        connections = [Connection(application, crowd) for _ in range(IN_FLIGHT)]
        for connection in connections:
            connection.connection_made(Wire())
        for group in range(GROUPS):
            for place, connection in enumerate(connections):
                path, body = ask(group * IN_FLIGHT + place)
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.data_received(head.encode() + body)
            for _ in range(3):
                await asyncio.sleep(0)

    with tempfile.TemporaryDirectory() as folder, watch.watching(NETWORK):
        asyncio.run(play(Path(folder)))
    return watch.seconds


def engine(kind: str) -> dict[str, float]:
    def rated(prefix: str, number: int) -> Feedback:
        user, item = number * 7919 % USERS, number * 104_729 % ITEMS
        return Feedback(f"{prefix}-{number}", 1.0 + number % 5, user=f"u{user}", item=f"i{item}")

    def tickets(group: int) -> list[Ticket]:
        numbers = range(group * IN_FLIGHT, (group + 1) * IN_FLIGHT)
        return [Ticket(Recommend(f"u{n * 7919 % USERS}") if kind == "recommend" else rated("durable", n), lambda _: None) for n in numbers]

    watch = Watch()
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine(Path(folder) / "stages", Options(scale=(1, 5), policy=ALB(rank=RANK))) as served,
    ):
        served.wait_ready()
        for start in range(0, 2 * ITEMS, 1_000):
            served.ask(FeedbackBatch([rated("fill", number) for number in range(start, min(start + 1_000, 2 * ITEMS))]))
        for group in range(WARM_UP_GROUPS):
            served._serve(tickets(GROUPS + group))
        groups = [tickets(group) for group in range(GROUPS)]
        with watch.watching(ENGINE):
            for group_of in groups:
                served._serve(group_of)
    return watch.seconds


def main() -> None:
    print(*machine.describe(), "", sep="\n")
    columns = [{**network(recommend), **engine("recommend")}, {**network(feedback("durable")), **engine("rate")}]
    stages = dict.fromkeys(stage for stage, _, _ in (*NETWORK, *ENGINE))
    print(f"| {'stage, µs a request':<38} | recommendation | durable feedback |", f"| {'---':<38} | ---: | ---: |", sep="\n")
    for stage in stages:
        shown = [f"{column.get(stage, 0.0) / GROUPS / IN_FLIGHT * 1e6:.1f}" for column in columns]
        print(f"| {stage:<38} | {shown[0]:>14} | {shown[1]:>16} |")
    totals = [sum(column.values()) / GROUPS / IN_FLIGHT * 1e6 for column in columns]
    print(f"| {'all':<38} | {totals[0]:>14.1f} | {totals[1]:>16.1f} |")


if __name__ == "__main__":
    main()
