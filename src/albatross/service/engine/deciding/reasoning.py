"""Why an item was shown, in words that people read: from exact contributions of the user's own ratings, and from what everybody said."""

from typing import NamedTuple

import numpy as np

from albatross.core.agent import Agent
from albatross.core.beliefs import parts_of_mean
from albatross.kernels.pairs import NOTHING, Pairs, find_pair
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Part

MOST_PARTS = 12
"""Ratings that are told of each item, at most: those that count most."""
MOST_NAMED = 2
"""Of them, so many are named in a sentence."""
WORTH_NAMING = 0.1
"""A rating is named where its part is at least this share of all parts."""
FEW = 3
"""An item with fewer ratings is called new."""
ABOVE = 0.1
"""An item is called popular if its mean rating is above that of all by this share of the scale."""


class Why(NamedTuple):
    """Base + the parts + others = mean."""

    base: float | None
    """What is expected without this user's ratings; none where the policy does not take its mean apart."""
    parts: list[Part]
    others: float
    why: list[str]
    """Short sentences."""


def why(model: Model, agent: Agent, row: int, item: int, mean: float, explored: bool) -> Why:
    """Take the mean of an item apart, and say it."""
    found = parts_of_mean(agent, row, item) if row < len(model.users) else None
    base, parts, others = None, list[Part](), 0.0
    if found is not None and found.items.size:
        total = float(found.parts.sum())
        largest = np.argsort(-np.abs(found.parts), kind="stable")[:MOST_PARTS]
        parts = [
            Part(model.items.names[other], _rating(agent, row, other), float(found.parts[at]))
            for at in largest.tolist()
            for other in [int(found.items[at])]
        ]
        base, others = mean - total, total - sum(part.part for part in parts)
    return Why(base, parts, others, _sentences(model, item, parts, explored))


def _rating(agent: Agent, row: int, item: int) -> float | None:
    """The mean of what the user said of an item, where the policy remembers it."""
    pairs = getattr(agent.state, "pairs", None)
    if not isinstance(pairs, Pairs) or (entry := find_pair(pairs, row, item)) == NOTHING:
        return None
    return float(pairs.totals[entry] / pairs.plays[entry])


def _own(model: Model, parts: list[Part]) -> list[str]:
    """Which ratings of their own speak most for it."""
    least = WORTH_NAMING * sum(abs(part.part) for part in parts)
    telling = [part for part in parts if part.part >= least and part.part > 0.0 and part.rating is not None]
    average = _average(model)
    liked = [part.item for part in telling if part.rating is not None and part.rating >= average][:MOST_NAMED]
    if liked:
        return [f"because you liked {' and '.join(liked)}"]
    disliked = [part.item for part in telling][:MOST_NAMED]
    return [f"because you did not like {' and '.join(disliked)}"] if disliked else []


def _sentences(model: Model, item: int, parts: list[Part], explored: bool) -> list[str]:
    ledger = model.ledger
    ratings = int(ledger.item_ratings[item]) if item < len(model.items) else 0
    if ratings < FEW:  # then the user's ratings say that they like what they see, not that they would like this
        return ["new, so we try it"]
    said, (low, high) = _own(model, parts), model.genesis.scale
    if ledger.item_sums[item] / ratings >= _average(model) + ABOVE * (high - low):
        said.append("popular with everybody")
    if explored:
        said.append("shown by chance, so that we learn")
    return said or ["the best guess so far"]


def _average(model: Model) -> float:
    return float(model.ledger.item_sums.sum()) / max(model.ratings, 1)
