"""Loads or compiles the machine code: most of it before the first request, the rest beside serving."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Literal

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from albatross.core.agent import learn
from albatross.core.sharing.carrying import rows_of
from albatross.kernels.building.beside import Ending, in_another_process, never, usable_cores
from albatross.kernels.compiling import NotCompiled, is_shared, is_wanted, only_loaded
from albatross.kernels.operations import carry, join, offers
from albatross.kernels.operations import replace as exchange_rating
from albatross.service.api.errors import NoEligibleCandidate
from albatross.service.api.requests import Recommend
from albatross.service.api.values import Seen
from albatross.service.engine.deciding.choosing import decide_plainly, view_user
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.together import decide_together
from albatross.service.engine.learned.ledger import grown, rated_by
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Arrived, Genesis, Item, Joined, Passed, Rated, Reacted, encode

BESIDE = 5
"""How much the other process gives way to one that serves (`nice`)."""


def warm(genesis: Genesis) -> None:
    """Before the first request: run a few events with the same policy on a temporary model.

    If nothing is compiled yet, another process compiles what learns, while this one compiles what chooses and explains.
    """
    model = _temporary(genesis, 0)
    compiles = is_wanted(learn, type(model.agent.state)) and usable_cores() > 1
    with _other_process(Task(_plain(genesis), 0, "learning"), compiles) as finish:
        _choose(model, genesis)
        finish()
        _explain_and_learn(model, genesis)


def load_the_rest(genesis: Genesis, n_items: int = 0, ending: Ending = never) -> None:
    """What replaces and joins ratings; with `n_items`, also all the rest for so large a catalogue, which is then searched.

    What is not on disk is compiled by another process: Numba compiles one function at a time, and everybody would have to wait. If there
    can be no other process, or if it fails, it is compiled here.
    """
    try:
        with only_loaded():
            _run(genesis, n_items)
    except NotCompiled:
        with _other_process(Task(_plain(genesis), n_items, "the rest"), is_shared()) as finish:
            finish(ending)
        if not ending():
            _run(genesis, n_items)


class Task(Struct):
    """What another process compiles."""

    genesis: Genesis
    n_items: int
    part: Literal["learning", "the rest"]


def warm_aside(encoded: bytes) -> None:
    """The work of the other process. An engine then finds it compiled."""
    task = decode(encoded, type=Task)
    if task.part == "the rest":
        if hasattr(os, "nice"):
            os.nice(BESIDE)
        _run(task.genesis, task.n_items)
    else:
        model = _temporary(task.genesis, task.n_items)
        model.fold_all([2, 3], [Item(0.0, _first(task.genesis)), _rating(task.genesis, "somebody")])
        model.learn()
        if task.genesis.events or task.genesis.shards > 1:
            _change(model, task.genesis)


def _run(genesis: Genesis, n_items: int) -> None:
    model = _temporary(genesis, n_items)
    if n_items > 0:
        _choose(model, genesis)
        _explain_and_learn(model, genesis)
    else:
        model.fold_all([2, 3], [Item(0.0, _first(genesis)), _rating(genesis, "somebody")])
        model.learn()
    _change(model, genesis)


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


def _other_process(task: Task, wanted: bool) -> AbstractContextManager[Callable[..., None]]:
    return in_another_process(warm_aside, encode(task), wanted and task.genesis.outside is None)


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


def _explain_and_learn(model: Model, genesis: Genesis) -> None:
    _decide(model, _first(genesis), 5, "pending", explain=True)  # now the first decision is pending
    model.learn()
    if model.shared is not None:
        model.shared.fold(model.ledger, [model.shared.take(model.ledger).to_bytes()] * genesis.shards)
    view_user(model, "somebody", 1)
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
