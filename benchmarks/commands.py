"""The cost of a new process: imports, machine code compiled or loaded, and then the work."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import Line, Quantity

COMMAND = ("run", "--policy", "alb", "--dataset", "gaussian", "--horizon", "25000", "--seeds", "1")
RUN = (str(Path(sys.executable).with_name("albatross")), "run")
FIRST_TRIAL = """
import time
from albatross import simulate
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
began = time.process_time()
simulate(ALB(), Gaussian(), horizon=1)
print(time.process_time() - began)
"""


def command() -> Iterator[Line]:
    """The cost of a command: the first time with nothing compiled, then always."""
    with tempfile.TemporaryDirectory() as folder:
        surroundings = Surroundings(Path(folder))
        run = (sys.executable, "-X", "importtime", str(Path(sys.executable).with_name("albatross")), *COMMAND)
        surroundings.call(*run)  # leaves bytecode behind
        surroundings.forget_machine_code()
        cold = surroundings.call(*run)
        warm = [surroundings.call(*run) for _ in range(5)]
    seconds = statistics.median(call.cpu_seconds for call in warm)
    importing = statistics.median(call.import_share * call.cpu_seconds for call in warm)
    whole = Quantity("warm", seconds)
    yield Line("albatross run, 25,000 steps, one seed", whole, Quantity("cold", cold.cpu_seconds), "warm < 2 s", seconds < 2.0)
    yield Line("of it, imports", Quantity("imports", importing), whole, "> 0.5", importing > 0.5 * seconds)


MOST_COLD = {"mean-field": 12.0, "alb": 12.0}
MOST_UNREADY = 10.0
"""Seconds until a service with a new folder is ready, with nothing compiled."""


def cold() -> Iterator[Line]:
    """The first result of `albatross run`, and a service until it is ready, with nothing compiled.

    Bytecode is there, as after an installation. Both compile in two processes at once, so they are timed by the clock, which is right on a
    free machine only. Processor time is printed, too: for a run that of both processes, for a service that of each.
    """
    with tempfile.TemporaryDirectory() as folder:
        surroundings = Surroundings(Path(folder))
        commands = {policy: (*RUN, "--policy", policy, "--dataset", "gaussian", "--horizon", "100", "--seeds", "1") for policy in MOST_COLD}
        surroundings.call(*commands["alb"])  # leaves bytecode behind
        surroundings.until_ready("alb")
        for policy, limit in MOST_COLD.items():
            surroundings.forget_machine_code()
            call = surroundings.call(*commands[policy])
            yield Line.at_most(f"albatross run, {policy}", Quantity("by the clock", call.seconds), Quantity("limit", limit), 1.0)
            yield Line("its processor time", Quantity("both processes", call.cpu_seconds), Quantity("by the clock", call.seconds))
        for policy in MOST_COLD:
            surroundings.forget_machine_code()
            ready = surroundings.until_ready(policy)
            most = Quantity("limit", MOST_UNREADY)
            yield Line.at_most(f"albatross serve, {policy}, ready", Quantity("by the clock", ready.clock), most, 1.0)
            yield Line.at_most("its own processor time", Quantity("own", ready.own), most, 1.0)
            yield Line("that of the other process", Quantity("other", ready.other), Quantity("own", ready.own))


def start_up() -> Iterator[Line]:
    """The cost of the first trial of a process before its first step."""
    with tempfile.TemporaryDirectory() as folder:
        surroundings = Surroundings(Path(folder))
        first_trial = (sys.executable, "-c", FIRST_TRIAL)
        surroundings.call(*first_trial)
        surroundings.forget_machine_code()
        cold = float(surroundings.call(*first_trial).output)
        warm = statistics.median(float(surroundings.call(*first_trial).output) for _ in range(5))
    yield Line("first trial in a process", Quantity("compile", cold), Quantity("load", warm))


class Call(NamedTuple):
    output: str
    seconds: float
    """By the clock."""
    cpu_seconds: float
    """User and system time of the process and its children."""
    import_share: float
    """Share of the wall time spent on imports, if the interpreter was asked to report it."""


class Ready(NamedTuple):
    """Seconds until a service was ready: by the clock, and of processor time of its process and of those that it has started.

    One of those may still compile what explains.
    """

    clock: float
    own: float
    other: float


class Surroundings:
    """A separate place for files that processes leave behind: machine code and bytecode."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.variables["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        self.forget_machine_code()

    def forget_machine_code(self) -> None:
        self.variables["ALBATROSS_CACHE"] = tempfile.mkdtemp(dir=self.folder)

    def call(self, *arguments: str) -> Call:
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as messages:
            began = time.perf_counter()
            process = subprocess.Popen(arguments, env=self.variables, stdout=output, stderr=messages)
            _, status, usage = os.wait4(process.pid, 0)
            elapsed = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            messages.seek(0)
            if process.returncode != 0:
                raise RuntimeError(f"{' '.join(arguments)} failed: {messages.read()}")
            importing = sum(_import_seconds(line) for line in messages)
            return Call(output.read(), elapsed, usage.ru_utime + usage.ru_stime, importing / elapsed)

    def until_ready(self, policy: str) -> Ready:
        """The cost of `albatross serve` on a new folder until it says that it is ready."""
        shop = tempfile.mkdtemp(dir=self.folder)
        settings = ("--scale=1..5", "--port=0", "--log=json", "--policy", policy)
        command = (str(Path(sys.executable).with_name("albatross")), "serve", shop, *settings)
        began = time.perf_counter()
        with subprocess.Popen(command, env=self.variables, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            try:
                for line in server.stderr:
                    if '"event":"ready"' in line.replace(" ", ""):
                        clock = time.perf_counter() - began
                        own, ended = processor_seconds(server.pid)
                        return Ready(clock, own, ended + sum(processor_seconds(child)[0] for child in _children(server.pid)))
            finally:
                server.terminate()
        raise RuntimeError(f"{' '.join(command)} ended before it was ready")


def processor_seconds(process: int) -> tuple[float, float]:
    """Of a whole process, with its threads that have ended; and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    user, system, of_children, system_of_children = (int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:15])
    return user + system, of_children + system_of_children


def _children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _import_seconds(line: str) -> float:
    """The first number of a line like `import time:   123 |   456 | numpy` is microseconds without imports within the import."""
    kind, _, numbers = line.partition("import time:")
    own = numbers.partition("|")[0].strip()
    return 1e-6 * int(own) if not kind and own.isdigit() else 0.0
