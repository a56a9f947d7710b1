"""Similar items, by their vectors."""

import time

import numpy as np

from albatross.service.api.errors import BadValue, UnknownItem
from albatross.service.api.requests import SimilarItems
from albatross.service.api.values import MOST_LISTED, check_count, check_id
from albatross.service.api.views import SimilarItem, SimilarList
from albatross.service.engine.learned.model import Model
from albatross.service.storage.store import ReadableLog


def similar_items(model: Model, log: ReadableLog, request: SimilarItems) -> SimilarList:
    """Ordered by the angle between the vectors. Only items that may be shown now and have a vector."""
    check_id("item", request.item)
    check_count("n", request.n, 1, MOST_LISTED)
    item = model.items.numbers.get(request.item)
    if item is None:
        raise UnknownItem(f"item is {request.item!r}; accepted: an item there is")
    vectors = getattr(model.agent.state, "item_factors", None)
    if not isinstance(vectors, np.ndarray):
        raise BadValue(f"policy {model.genesis.policy!r} keeps no vectors of items; accepted: a policy that does, such as mean-field")
    others = model.described.available(model.shown, time.time())
    others = others[others != item]
    lengths = np.sqrt((vectors**2).sum(axis=1))
    if lengths[item] == 0.0:
        return SimilarList([], model.seq)
    others = others[lengths[others] > 0.0]
    cosines = vectors[others] @ vectors[item] / (lengths[others] * lengths[item])
    best = np.argsort(-cosines, kind="stable")[: request.n]
    ratings = model.ledger.item_ratings
    found = [SimilarItem(model.items.names[others[at]], float(cosines[at]), int(ratings[others[at]])) for at in best]
    return SimilarList(found, model.seq)
