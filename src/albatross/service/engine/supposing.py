"""What a user would be shown after one more rating: learned by a copy that is thrown away."""

from albatross.core.agent import Agent
from albatross.core.state import flatten
from albatross.core.streams import stream
from albatross.service.api.answers import ShownItem
from albatross.service.api.errors import BadValue, NoEligibleCandidate, UnknownItem
from albatross.service.api.requests import Suppose
from albatross.service.api.values import MOST_SHOWN, check_count, check_id, check_rating
from albatross.service.api.views import WhatIf
from albatross.service.engine.answering import CHEAP_BYTES
from albatross.service.engine.deciding import best_of, choose_counting, shown_items
from albatross.service.engine.model import NONE, Model
from albatross.service.engine.overlay import Overlay
from albatross.service.storage.store import ReadableLog

MOST_COPIED = 1 << 25
"""Bytes of a model that is copied in passing, at most: so many take some hundredths of a second."""


def suppose(model: Model, log: ReadableLog, request: Suppose) -> WhatIf:
    """The best items before and after. What is learned of all others by this rating counts, too; the log and the model stay as they are."""
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
    if size > MOST_COPIED:
        raise BadValue(f"the model has {size:,} bytes; accepted, to suppose a rating: up to {MOST_COPIED:,}")
    row = model.row_of(request.user)
    agent = Overlay(model).agent_for(row)
    before = _best(model, agent, row, request.n)
    other = agent.apart()
    other.update(row, item, float(request.rating))
    after = _best(model, other, row, request.n)
    name = model.state_id if size <= CHEAP_BYTES else None
    return WhatIf(request.user, request.item, float(request.rating), before, after, model.seq, name)


def _best(model: Model, agent: Agent, row: int, n: int) -> list[ShownItem]:
    choose_counting(agent, row, model.shown, NONE, stream(model.genesis.seed, "viewing"))
    return shown_items(best_of(agent, Overlay(model), model.shown, n))
