"""What a user would be shown after one more rating: as the policy supposes it, or as a copy learns it that is thrown away."""

import numpy as np

from albatross.core.agent import Agent
from albatross.core.beliefs import choose_supposing
from albatross.core.state import flatten
from albatross.core.streams import stream
from albatross.kernels.operations import offers
from albatross.kernels.operations import suppose as supposing
from albatross.service.api.answers import ShownItem
from albatross.service.api.errors import BadValue, NoEligibleCandidate, UnknownItem
from albatross.service.api.requests import Suppose
from albatross.service.api.values import MOST_SHOWN, check_count, check_id, check_rating
from albatross.service.api.views import WhatIf
from albatross.service.engine.answering import CHEAP_BYTES
from albatross.service.engine.deciding.choosing import best_of, choose_counting, shown_items
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.learned.model import NONE, Model
from albatross.service.storage.store import ReadableLog

MOST_COPIED = 1 << 25
"""Bytes of a model that is copied in passing, at most: so many take some hundredths of a second."""


def suppose(model: Model, log: ReadableLog, request: Suppose) -> WhatIf:
    """The best items before and after. The log and the model stay as they are."""
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
    row, rating = model.row_of(model.visitors.known_as(request.user)), float(request.rating)
    agent = Overlay(model).agent_for(row)
    choose_counting(agent, row, model.shown, NONE, _viewing(model))
    before = _best(model, agent, request.n)
    if not _supposed(model, agent, row, item, rating):
        if size > MOST_COPIED:
            raise BadValue(f"the model has {size:,} bytes; accepted, for a policy that cannot suppose a rating: up to {MOST_COPIED:,}")
        agent = agent.apart()
        agent.update(row, item, rating)
        choose_counting(agent, row, model.shown, NONE, _viewing(model))
    after = _best(model, agent, request.n)
    name = model.state_id if size <= CHEAP_BYTES else None
    return WhatIf(request.user, request.item, rating, before, after, model.seq, name)


def _supposed(model: Model, agent: Agent, row: int, item: int, rating: float) -> bool:
    """Let the policy fill the slate as if the rating had come. Whether it can."""
    if not offers(agent.state, supposing):
        return False
    items, rewards = np.array([item], np.int32), np.array([rating])
    position, _ = agent.run(choose_supposing, _viewing(model), row, model.shown, items, rewards, True)
    return bool(position >= 0)


def _best(model: Model, agent: Agent, n: int) -> list[ShownItem]:
    return shown_items(best_of(agent, Overlay(model), model.shown, n))


def _viewing(model: Model) -> np.random.Generator:
    return stream(model.genesis.seed, "viewing")
