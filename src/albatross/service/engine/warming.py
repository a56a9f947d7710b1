"""Loads or compiles the machine code: most of it before the first request, the rest beside serving."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from albatross.core.agent import learn
from albatross.core.asking.together import best_of_slate
from albatross.core.sharing.carrying import rows_of
from albatross.kernels.building.beside import LOOK_SECONDS, Beside, Ending, never, usable_cores
from albatross.kernels.compiling import NotCompiled, is_shared, is_wanted, only_loaded
from albatross.kernels.operations import carry, join, offers
from albatross.kernels.operations import replace as exchange_rating
from albatross.service.api.errors import NoEligibleCandidate
from albatross.service.api.requests import JoinUsers, LookBack, Recommend, Request, SetRewards, ViewDecision, ViewUser
from albatross.service.api.values import Seen
from albatross.service.engine.deciding.choosing import decide_plainly, room_for_close, view_user
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.together import decide_together
from albatross.service.engine.learned.ledger import grown, rated_by
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Arrived, Genesis, Item, Joined, Passed, Rated, Reacted, encode

BESIDE = 5
"""How much the other process gives way to one that serves (`nice`)."""

CHANGING = frozenset({JoinUsers, SetRewards})
"""Requests that need what replaces and joins ratings: a join, and the events that replace others once there are rewards."""
EXPLAINING = frozenset({ViewUser, ViewDecision, LookBack})
"""Requests that need what explains, beside recommendations with an explanation."""


def is_changing(request: Request[Any]) -> bool:
    return type(request) in CHANGING


def is_explaining(request: Request[Any]) -> bool:
    return type(request) in EXPLAINING or (type(request) is Recommend and bool(request.explain))


def is_changing_or_explaining(request: Request[Any]) -> bool:
    return is_changing(request) or is_explaining(request)


class Warmed(NamedTuple):
    helper: Beside
    """The other process, which may still compile what explains."""
    explains: bool
    """Whether what explains is loaded, too."""


def warm(genesis: Genesis, at_once: bool = True, ending: Ending = never) -> Warmed:
    """Before the first request: run a few events with the same policy on a temporary model.

    If nothing is compiled yet, another process compiles what learns, and this one what chooses. Then the other one compiles what explains,
    and nobody waits for that here; unless all is needed at once, or there can be no other process.
    """
    model = _temporary(genesis, 0)
    shared = genesis.outside is None and usable_cores() > 1 and is_shared()
    at_once = at_once or not shared

    def learns() -> bool:
        return not is_wanted(learn, type(model.agent.state))

    helper = _other_process(Task(_plain(genesis), 0, "learning" if at_once else "learning, then explaining"), shared and not learns())
    try:
        _choose(model, genesis)
        if at_once and not ending():
            _explain(model, genesis)
        helper.wait(lambda: ending() or (not at_once and learns()))
        if ending():
            return Warmed(helper, False)
        _learn(model, genesis)
        return Warmed(helper, at_once or _is_loaded(_give_account, model))
    except BaseException:
        helper.end()
        raise


def load_explanations(genesis: Genesis, warmed: Warmed | None, ending: Ending) -> None:
    """What explains, as soon as the other process has compiled it."""
    if warmed is not None and not warmed.explains:
        warmed.helper.wait(ending)
        _have_compiled("explaining", genesis, 0, ending)


def load_the_rest(genesis: Genesis, n_items: int = 0, ending: Ending = never) -> None:
    """What replaces and joins ratings; with `n_items`, all code for a catalogue of that size, which is searched."""
    _have_compiled("the rest", genesis, n_items, ending)


def _have_compiled(part: "Portion", genesis: Genesis, n_items: int, ending: Ending) -> None:
    """Load a part. What is not on disk is compiled by another process: Numba compiles one function at a time, and everybody would have to
    wait. If there can be no other process, or if it fails, it is compiled here.
    """
    if ending() or _is_loaded(PARTS[part], genesis, n_items):
        return
    while not _compiling.acquire(timeout=LOOK_SECONDS):
        if ending():
            return
    try:
        if not _is_loaded(PARTS[part], genesis, n_items):  # an engine of this process may have had it compiled meanwhile
            with _other_process(Task(_plain(genesis), n_items, part), is_shared()) as helper:
                helper.wait(ending)
    finally:
        _compiling.release()
    if not ending():
        PARTS[part](genesis, n_items)


_compiling = threading.Lock()
"""The engines of a process have parts compiled one after the other: most need the same, and serving needs the processor, too."""


def _is_loaded(run: Callable[..., None], *arguments: Any) -> bool:
    """Whether all that this runs could be loaded. It stops at the first that is not compiled."""
    try:
        with only_loaded():
            run(*arguments)
    except NotCompiled:
        return False
    return True


Portion = Literal["learning", "learning, then explaining", "explaining", "the rest"]


class Task(Struct):
    """What another process compiles."""

    genesis: Genesis
    n_items: int
    part: Portion


def warm_aside(encoded: bytes) -> None:
    """The work of the other process. An engine then finds it compiled."""
    task = decode(encoded, type=Task)
    if task.part in ("explaining", "the rest"):
        _give_way()
    PARTS[task.part](task.genesis, task.n_items)


def _give_way() -> None:
    if hasattr(os, "nice"):
        os.nice(BESIDE)


def _learned(genesis: Genesis, n_items: int) -> Model:
    model = _temporary(genesis, n_items)
    model.fold_all([2, 3], [Item(0.0, _first(genesis)), _rating(genesis, "somebody")])
    model.learn()
    return model


def _run_learning(genesis: Genesis, n_items: int) -> None:
    model = _learned(genesis, n_items)
    if genesis.events or genesis.shards > 1:
        _change(model, genesis)


def _run_both(genesis: Genesis, n_items: int) -> None:
    model = _learned(genesis, n_items)
    _give_way()
    _give_account(model)


def _run_explaining(genesis: Genesis, n_items: int) -> None:
    _give_account(_temporary(genesis, n_items))


def _run_rest(genesis: Genesis, n_items: int) -> None:
    if n_items == 0:
        _change(_learned(genesis, n_items), genesis)
        return
    model = _temporary(genesis, n_items)
    _choose(model, genesis)
    _explain(model, genesis)
    _learn(model, genesis)
    _change(model, genesis)


PARTS: dict[Portion, Callable[[Genesis, int], None]] = {
    "learning": _run_learning,
    "learning, then explaining": _run_both,
    "explaining": _run_explaining,
    "the rest": _run_rest,
}


def _temporary(genesis: Genesis, n_items: int) -> Model:
    """A model with room for so many items. Raises `InvalidInput` if the policy cannot hold them."""
    model = Model(replace(genesis, users=[]))
    if n_items > model.agent.n_items:
        model.agent.search(True)
        model.agent.grow(model.agent.n_users, n_items)
        model.ledger = grown(model.ledger, model.agent.n_users, n_items)
    return model


def _plain(genesis: Genesis) -> Genesis:
    return replace(genesis, users=[], items=[])


def _other_process(task: Task, wanted: bool) -> Beside:
    return Beside(warm_aside, encode(task), wanted and task.genesis.outside is None)


def _first(genesis: Genesis) -> str:
    return genesis.items[0] if genesis.items else "first"


def _rating(genesis: Genesis, user: str, event: str = "rating") -> Rated:
    return Rated(0.0, event, user, _first(genesis), genesis.scale[0], None, None, None)


def _choose(model: Model, genesis: Genesis) -> None:
    """Decisions, one by one and together."""
    item = _first(genesis)
    model.fold_all([2], [Item(0.0, item)])
    _decide(model, item, 3, "none", explain=False)
    model.fold_all([4], [_rating(genesis, "somebody")])
    decide_together(Overlay(model), [Recommend("somebody")], (), 4, 0.0, "")
    _decide(model, item, 5, "pending", explain=False)  # now the first decision is pending
    best_of_slate(model.agent, model.turner.random, model.shown, room_for_close(model.shown))


def _explain(model: Model, genesis: Genesis) -> None:
    """Explanations of decisions, and the view of a user."""
    _give_account(model)
    _decide(model, _first(genesis), model.seq + 1, "pending", explain=True)
    view_user(model, "somebody", 1)


def _give_account(model: Model) -> None:
    model.accounts.of(model.agent, model.turner.random, 0, True, [0])


def _learn(model: Model, genesis: Genesis) -> None:
    model.learn()
    if model.shared is not None:
        model.shared.fold(model.ledger, [model.shared.take(model.ledger).to_bytes()] * genesis.shards)
    if genesis.events or genesis.shards > 1:  # these come with the first requests
        _change(model, genesis)


def _change(model: Model, genesis: Genesis) -> None:
    """A rating that replaces another, a visitor who is joined with a user, and one who moves between shards."""
    item, (low, high) = _first(genesis), genesis.scale
    seq, agent = model.seq, model.agent
    model.fold_all([seq + 1], [_rating(genesis, "changing", "one")])
    if offers(agent.state, exchange_rating):
        model.fold_all([seq + 2], [Reacted(0.0, "two", "changing", item, "", high, None, None, None, 1, seq + 1, low)])
    if offers(agent.state, join):
        model.fold_all([seq + 3, seq + 4], [_rating(genesis, "visitor", "three"), Joined(0.0, "visitor", "changing")])
        if model.shared is not None and offers(agent.state, carry):
            row = model.users.numbers["changing"]
            rows, items = rows_of(agent, row), rated_by(model.ledger, row).tolist()
            arrival = Arrived(0.0, "arriving", "somebody", [], rows, items, [], [])
            model.fold_all([seq + 5, seq + 6], [Joined(0.0, "changing", "away", away=True), arrival])
            if offers(agent.state, exchange_rating):
                model.fold_all([seq + 7], [Passed(0.0, "arriving", "somebody", item, high, None, None, "", low)])


def _decide(model: Model, item: str, seq: int, seen: Seen, explain: bool) -> None:
    request = Recommend("somebody", candidates=[item], exclude_seen="none", explain=explain)
    model.fold_all([seq], [decide_plainly(Overlay(model), request, seq, seq - 1, 0.0).event])
    with suppress(NoEligibleCandidate):
        decide_plainly(Overlay(model), Recommend("somebody", exclude_seen=seen), seq, seq - 1, 0.0)
