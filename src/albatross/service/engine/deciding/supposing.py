"""What a user would be shown after one more rating: by the policy's own `suppose`, or by a temporary copy that learns it."""

import numpy as np

from albatross.core.agent import Agent, room_for_best
from albatross.core.asking.together import choose_supposing
from albatross.core.state import flatten
from albatross.core.streams import stream
from albatross.kernels.operations import offers
from albatross.kernels.operations import suppose as supposing
from albatross.service.api.errors import BadValue, NoEligibleCandidate, UnknownItem
from albatross.service.api.requests import Suppose
from albatross.service.api.values import MOST_SHOWN, check_count, check_id, check_rating
from albatross.service.api.views import WhatIf
from albatross.service.engine.answering import CHEAP_BYTES
from albatross.service.engine.deciding.choosing import best_of, choose_best
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.reasoning import shown_items
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Placed
from albatross.service.storage.store import ReadableLog

MOST_COPIED = 1 << 25
"""Limit in bytes of a model that is copied for this: it takes some hundredths of a second."""


def suppose(model: Model, log: ReadableLog, request: Suppose) -> WhatIf:
    """The best items before and after. The log and the model are not changed."""
    check_id("user", request.user)
    check_id("item", request.item)
    check_rating(request.rating, model.genesis.scale)
    check_count("n", request.n, 1, MOST_SHOWN)
    item = model.items.numbers.get(request.item)
    if item is None:
        raise UnknownItem(f"item is {request.item!r}; accepted: an item there is")
    if not model.shown.size:
        raise NoEligibleCandidate("all items are retired; accepted: at least one that is not")
    size = sum(array.nbytes for _, array in flatten(model.agent.state))
    row, rating = model.row_of(model.visitors.here(request.user)), float(request.rating)
    view = Overlay(model)
    agent = view.agent_for(row)
    before = choose_best(agent, view, row, model.shown, request.n, _viewing(model))
    after = _supposed(view, agent, row, item, rating, request.n)
    if after is None:
        if size > MOST_COPIED:
            raise BadValue(f"the model has {size:,} bytes; accepted for a policy without the operation `suppose`: up to {MOST_COPIED:,}")
        agent = agent.apart()
        agent.update(row, item, rating)
        after = choose_best(agent, view, row, model.shown, request.n, _viewing(model))
    name = model.state_id if size <= CHEAP_BYTES else None
    return WhatIf(request.user, request.item, rating, shown_items(before), shown_items(after), model.seq, name)


def _supposed(view: Overlay, agent: Agent, row: int, item: int, rating: float, n: int) -> list[Placed] | None:
    """The n best items as if the rating had been given; None if the policy cannot tell."""
    if not offers(agent.state, supposing):
        return None
    items, rewards, candidates = np.array([item], np.int32), np.array([rating]), view.model.shown
    room = room_for_best(min(n, candidates.size))
    position, _ = choose_supposing(agent, _viewing(view.model), row, candidates, items, rewards, room.size == 0, room)
    return best_of(agent, view, candidates, n, room) if position >= 0 else None


def _viewing(model: Model) -> np.random.Generator:
    return stream(model.genesis.seed, "viewing")
