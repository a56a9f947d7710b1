"""Why an item was shown, in numbers and in words: from exact contributions of the user's ratings, and from everybody's ratings."""

import sys
from collections.abc import Sequence

import numpy as np
from msgspec.structs import asdict, astuple

from albatross.core.agent import Agent
from albatross.core.asking.accounts import MOST_PARTS, Report
from albatross.kernels.accounting import UNKNOWN
from albatross.service.api.answers import ConfidenceRegion, Contribution, Explanation, ItemExplanation, ShownItem
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.learned.ledger import rated_by
from albatross.service.storage.events import Part, Placed, ReasonForItem, Reasons, Region

LARGEST = sys.float_info.max
MOST_NAMED = 2
"""Number of listed ratings that are named in a sentence."""
WORTH_NAMING = 0.1
"""A rating is named if its contribution is at least this share of all contributions."""
FEW = 3
"""An item with fewer ratings is called new."""
ABOVE = 0.1
"""An item is called popular if its mean rating exceeds that of all ratings by this share of the scale."""
CLOSE = 5
"""Number of listed items that were not shown."""


def explain(view: Overlay, agent: Agent, user: str, pending: Sequence[int], placed: list[Placed], best: list[list[float]]) -> Explanation:
    """Why these items were placed. `best`: number, score and mean of the best ranked for the last place."""
    model = view.model
    numbers = [view.number_of(one.item) or 0 for one in placed]
    report = model.accounts.of(agent, model.turner.random, model.row_of(user), user in model.users.numbers, numbers)
    return explained(view, user, pending, placed, numbers, best, report)


def explained(
    view: Overlay, user: str, pending: Sequence[int], placed: list[Placed], numbers: list[int], best: list[list[float]], report: Report
) -> Explanation:
    """The same, from a report about the user and the items with these numbers."""
    items = [_why(view, report, place, user, number, shown) for place, (number, shown) in enumerate(zip(numbers, placed, strict=True))]
    return Explanation(view.model.ratings_of(user), view.names_of(pending), items, region_of(report), _close(view, numbers, best))


def region_of(report: Report) -> ConfidenceRegion | None:
    """The confidence region of the user; None if the policy has none."""
    return None if report.sizes[0] == UNKNOWN else ConfidenceRegion(report.center, report.radius[0], report.inverse, report.axes)


def _close(view: Overlay, shown: list[int], best: list[list[float]]) -> list[ShownItem]:
    """The next items in rank, by the model of the decision."""
    close = [line for line in best if line[0] not in shown][:CLOSE]
    names = view.names_of([int(line[0]) for line in close])
    return [ShownItem(names[at], at + 1, score, mean, score - mean, None) for at, (_, score, mean) in enumerate(close)]


def _why(view: Overlay, report: Report, place: int, user: str, number: int, shown: Placed) -> ItemExplanation:
    """Decompose the mean of an item, and put it into words."""
    model, ledger = view.model, view.model.ledger
    width, after = report.widths[place]
    _, rated, told = report.sizes
    own = report.own[place]
    if own == UNKNOWN:
        row = model.users.numbers.get(user)
        own = 0 if row is None else int(np.count_nonzero(rated_by(ledger, row) == number))
    names = model.items.names
    ratings = ledger.item_ratings.item(number) if number < len(names) else 0
    base, parts, others = None, list[Contribution](), 0.0
    if rated > 0:
        total, told = report.totals[place], min(told, MOST_PARTS)
        listed = zip(report.largest[place][:told], report.ratings[place], report.largest_parts[place], strict=False)
        parts = [Contribution(names[other], None if rating != rating else rating, part) for other, rating, part in listed]
        base = shown.mean - total
        others = total - sum(report.largest_parts[place][:told]) if told < rated else 0.0
    return ItemExplanation(
        shown.item,
        shown.mean,
        shown.score - shown.mean,
        shown.score,
        ratings,
        own,
        shown.explored,
        width if after <= LARGEST else None,
        after if after <= LARGEST else None,
        base,
        parts,
        others,
        _sentences(view, number, ratings, parts, shown.explored),
    )


def _sentences(view: Overlay, item: int, ratings: int, parts: list[Contribution], explored: bool) -> list[str]:
    if ratings < FEW:  # then the user's ratings show that they rate high, not that they would like this item
        return ["new, so we try it"]
    low, high = view.model.genesis.scale
    said = _own(view, parts)
    if view.model.ledger.item_sums.item(item) / ratings >= view.average + ABOVE * (high - low):
        said.append("popular with everybody")
    if explored:
        said.append("shown by chance, so that we learn")
    return said or ["the best guess so far"]


def _own(view: Overlay, parts: list[Contribution]) -> list[str]:
    """The user's own ratings with the largest contributions."""
    least = WORTH_NAMING * sum(abs(part.part) for part in parts)
    telling = [part for part in parts if part.part >= least and part.part > 0.0 and part.rating is not None]
    average = view.average
    liked = [part.item for part in telling if part.rating is not None and part.rating >= average][:MOST_NAMED]
    if liked:
        return [f"because you liked {' and '.join(liked)}"]
    disliked = [part.item for part in telling][:MOST_NAMED]
    return [f"because you did not like {' and '.join(disliked)}"] if disliked else []


def reasons_of(told: Explanation) -> Reasons:
    """An explanation as it stands in the log."""
    items = [ReasonForItem(**(asdict(one) | {"parts": [Part(*astuple(part)) for part in one.parts]})) for one in told.items]
    close = [Placed(one.item, one.score, one.mean, None, False) for one in told.close]
    return Reasons(told.user_ratings, told.pending, items, None if told.ellipsoid is None else Region(*astuple(told.ellipsoid)), close)


def explanation_of(kept: Reasons) -> Explanation:
    """The same, from the log."""
    items = [ItemExplanation(**(asdict(one) | {"parts": [Contribution(*astuple(part)) for part in one.parts]})) for one in kept.items]
    region = None if kept.ellipsoid is None else ConfidenceRegion(*astuple(kept.ellipsoid))
    return Explanation(kept.user_ratings, kept.pending, items, region, shown_items(kept.close))


def shown_items(placed: list[Placed]) -> list[ShownItem]:
    return [
        ShownItem(item.item, rank, item.score, item.mean, item.score - item.mean, item.propensity)
        for rank, item in enumerate(placed, start=1)
    ]


def finite(value: float) -> float:
    """Replace infinity by the largest number, because JSON has none: a policy that must try everything once scores it infinite."""
    number = float(value)
    return number if -LARGEST <= number <= LARGEST else max(-LARGEST, min(number, LARGEST))
