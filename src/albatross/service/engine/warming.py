"""Loads or compiles the machine code before the first request."""

from contextlib import suppress
from typing import cast

from msgspec.structs import replace

from albatross.core.asking.beliefs import parts_of_mean
from albatross.core.errors import InvalidInput
from albatross.kernels.operations import join, offers
from albatross.service.api.errors import NoEligibleCandidate
from albatross.service.api.requests import Recommend
from albatross.service.api.values import Seen
from albatross.service.engine.deciding.choosing import decide, view_user
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.together import decide_together
from albatross.service.engine.learned.ledger import grown
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Genesis, Item, Joined, Rated


def warm(genesis: Genesis, n_items: int = 0) -> None:
    """Run a few events with the same policy on a temporary model, with room for at least so many items."""
    items = genesis.items or ["first"]
    model = Model(replace(genesis, users=[]))
    if n_items > model.agent.n_items:
        try:
            model.agent.grow(model.agent.n_users, n_items)
        except InvalidInput:  # the policy cannot hold so many
            return
        model.ledger = grown(model.ledger, model.agent.n_users, n_items)
    model.fold_all([2], [Item(0.0, items[0])])
    for seq, seen in ((3, "none"), (4, "pending")):  # the second time, the first is pending
        request = Recommend("somebody", candidates=[items[0]], exclude_seen="none", explain=seq == 4)
        model.fold_all([seq], [decide(Overlay(model), request, seq, seq - 1, 0.0).event])
        with suppress(NoEligibleCandidate):
            decide(Overlay(model), Recommend("somebody", exclude_seen=cast(Seen, seen)), seq, seq - 1, 0.0)
    model.fold_all([5], [Rated(0.0, "rating", "somebody", items[0], genesis.scale[0], None, None, None)])
    model.learn()
    decide_together(Overlay(model), [Recommend("somebody")], (), 5, 0.0, "")
    if genesis.events:
        model.agent.replace(0, 0, genesis.scale[0], genesis.scale[1])
        if offers(model.agent.state, join):  # a shop has visitors, who are joined with users
            model.fold_all([6], [Rated(0.0, "another", "visitor", items[0], genesis.scale[0], None, None, None)])
            model.fold_all([7], [Joined(0.0, "visitor", "somebody")])
    if model.shared is not None:
        model.shared.fold(model.ledger, [model.shared.take(model.ledger).to_bytes()] * genesis.shards)
    view_user(model, "somebody", 1)
    parts_of_mean(model.agent, 0, 0)
