"""Loads or compiles the machine code before the first request."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from albatross.core.agent import learn
from albatross.core.errors import InvalidInput
from albatross.kernels.compiling import cache_root, is_wanted
from albatross.kernels.operations import join, offers
from albatross.service.api.errors import NoEligibleCandidate
from albatross.service.api.requests import Recommend
from albatross.service.api.values import Seen
from albatross.service.engine.deciding.choosing import decide, view_user
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.together import decide_together
from albatross.service.engine.learned.ledger import grown
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Genesis, Item, Joined, Rated, encode

ASIDE = """
import sys
sys.path[:] = sys.argv[1:]
from albatross.service.engine.warming import warm_aside
warm_aside(sys.stdin.buffer.read())
"""
LONGEST = 300.0
"""Seconds after which the other process is given up."""


def warm(genesis: Genesis, n_items: int = 0) -> None:
    """Run a few events with the same policy on a temporary model, with room for at least so many items.

    If nothing is compiled yet, another process compiles what learns, while this one compiles what chooses and explains.
    """
    model = _temporary(genesis, n_items)
    if model is None:
        return
    with _other_process(genesis, model) as finish:
        _choose(model, genesis)
        finish()
        _do_everything_else(model, genesis)


def warm_aside(encoded: bytes) -> None:
    """The work of the other process: learning, which another engine then finds compiled."""
    task = decode(encoded, type=Task)
    model = _temporary(task.genesis, task.n_items)
    if model is not None:
        model.fold_all([2, 3], [Item(0.0, _first(task.genesis)), _rating(task.genesis, "somebody")])
        model.learn()


class Task(Struct):
    genesis: Genesis
    n_items: int


def _temporary(genesis: Genesis, n_items: int) -> Model | None:
    model = Model(replace(genesis, users=[]))
    if n_items > model.agent.n_items:
        try:
            model.agent.grow(model.agent.n_users, n_items)
        except InvalidInput:  # the policy cannot hold so many
            return None
        model.ledger = grown(model.ledger, model.agent.n_users, n_items)
    return model


@contextmanager
def _other_process(genesis: Genesis, model: Model) -> Iterator[Callable[[], None]]:
    """Gives a function that waits until the other process, if there is one, has finished. However it ends, nothing depends on it."""
    process = None
    if genesis.outside is None and usable_cores() > 1 and sys.executable and is_wanted(learn, type(model.agent.state)):
        task = Task(replace(genesis, users=[], items=[]), model.agent.n_items)
        surroundings = os.environ | {"ALBATROSS_CACHE": str(cache_root().parent)}
        with suppress(OSError):
            process = Popen([sys.executable, "-c", ASIDE, *sys.path], env=surroundings, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)
            assert process.stdin is not None
            process.stdin.write(encode(task))
            process.stdin.close()
    try:
        yield lambda: None if process is None else _wait(process)
    finally:
        if process is not None:
            process.kill()
            process.wait()


def _wait(process: "Popen[bytes]") -> None:
    with suppress(TimeoutExpired):
        process.wait(LONGEST)


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _first(genesis: Genesis) -> str:
    return genesis.items[0] if genesis.items else "first"


def _rating(genesis: Genesis, user: str, event: str = "rating") -> Rated:
    return Rated(0.0, event, user, _first(genesis), genesis.scale[0], None, None, None)


def _choose(model: Model, genesis: Genesis) -> None:
    """Decisions, one by one and together; and their explanations."""
    item = _first(genesis)
    model.fold_all([2], [Item(0.0, item)])
    _decide(model, item, 3, "none", explain=False)
    model.fold_all([4], [_rating(genesis, "somebody")])
    decide_together(Overlay(model), [Recommend("somebody")], (), 4, 0.0, "")
    model.accounts.of(model.agent, model.turner.random, 0, True, [0])


def _do_everything_else(model: Model, genesis: Genesis) -> None:
    _decide(model, _first(genesis), 5, "pending", explain=True)  # now the first decision is pending
    model.learn()
    if genesis.events:
        model.agent.replace(0, 0, genesis.scale[0], genesis.scale[1])
        if offers(model.agent.state, join):  # a shop has visitors, who are joined with users
            model.fold_all([6, 7], [_rating(genesis, "visitor", "another"), Joined(0.0, "visitor", "somebody")])
    if model.shared is not None:
        model.shared.fold(model.ledger, [model.shared.take(model.ledger).to_bytes()] * genesis.shards)
    view_user(model, "somebody", 1)


def _decide(model: Model, item: str, seq: int, seen: Seen, explain: bool) -> None:
    request = Recommend("somebody", candidates=[item], exclude_seen="none", explain=explain)
    model.fold_all([seq], [decide(Overlay(model), request, seq, seq - 1, 0.0).event])
    with suppress(NoEligibleCandidate):
        decide(Overlay(model), Recommend("somebody", exclude_seen=seen), seq, seq - 1, 0.0)
