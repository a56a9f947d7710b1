"""Why an item was shown, in numbers and in words: from exact contributions of the user's ratings, and from everybody's ratings."""

import sys
from collections.abc import Sequence

import numpy as np
from msgspec.structs import asdict, astuple

from albatross.core.agent import Agent
from albatross.core.asking.accounts import MOST_NAMED, MOST_PARTS, Report
from albatross.kernels.accounting import NAMED, NAMED_COLUMNS, UNKNOWN
from albatross.service.api.answers import ConfidenceRegion, Contribution, Explanation, ItemExplanation, ShownItem
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.learned.ledger import rated_by
from albatross.service.storage.events import Part, Placed, ReasonForItem, Reasons, Region

LARGEST = sys.float_info.max
FEW = 3
"""An item with fewer ratings is called new."""
CLOSE = 5
"""Number of listed items that were not shown."""
Widths = tuple[float | None, float | None]
NO_WIDTHS: Widths = (None, None)
NAMED_AT = range(NAMED, NAMED + NAMED_COLUMNS * MOST_NAMED, NAMED_COLUMNS)
"""Columns where the named ratings begin."""


def explain(
    view: Overlay, agent: Agent, user: str, pending: Sequence[int], placed: list[Placed], best: list[list[float]], whole: bool
) -> Explanation:
    """Why these items were placed. `best`: number, score and mean of the best ranked for the last place."""
    model = view.model
    numbers = [view.number_of(one.item) or 0 for one in placed]
    row, known, random, average = model.row_of(user), user in model.users.numbers, model.turner.random, view.average
    if not whole:
        return reasoned(view, user, placed, numbers, model.accounts.reasons(agent, random, [row], known, [numbers], average)[0])
    return explained(view, user, pending, placed, numbers, best, model.accounts.of(agent, random, row, known, numbers, average))


def explained(
    view: Overlay, user: str, pending: Sequence[int], placed: list[Placed], numbers: list[int], best: list[list[float]], report: Report
) -> Explanation:
    """Everything about the choice, from a report about the user and the items with these numbers."""
    items = []
    for place, shown in enumerate(placed):
        now, after = report.widths[place]
        widths = (now, after) if after <= LARGEST else (None, None)
        listed = range(min(report.sizes[2], MOST_PARTS)) if report.sizes[1] > 0 else range(0)
        largest, ratings, contributions = report.largest[place], report.ratings[place], report.largest_parts[place]
        parts = [_contribution(view, largest[at], ratings[at], contributions[at]) for at in listed]
        items.append(_why(view, user, numbers[place], shown, report.brief[place], parts, widths))
    return Explanation(view.model.ratings_of(user), view.names_of(pending), items, region_of(report), _close(view, numbers, best))


def reasoned(view: Overlay, user: str, placed: list[Placed], numbers: list[int], briefs: list[list[float]]) -> Explanation:
    """Only the reasons, with the ratings that they name."""
    items = [_why(view, user, numbers[place], shown, briefs[place], None, NO_WIDTHS) for place, shown in enumerate(placed)]
    return Explanation(view.model.ratings_of(user), [], items, None)


def region_of(report: Report) -> ConfidenceRegion | None:
    """The confidence region of the user; None if the policy has none."""
    return None if report.sizes[0] == UNKNOWN else ConfidenceRegion(report.center, report.radius[0], report.inverse, report.axes)


def _close(view: Overlay, shown: list[int], best: list[list[float]]) -> list[ShownItem]:
    """The next items in rank, by the model of the decision."""
    close = [line for line in best if line[0] not in shown][:CLOSE]
    name_of = view.name_of
    return [ShownItem(name_of(int(item)), rank, score, mean, score - mean, None) for rank, (item, score, mean) in enumerate(close, 1)]


def _why(
    view: Overlay, user: str, number: int, shown: Placed, brief: list[float], parts: list[Contribution] | None, widths: Widths
) -> ItemExplanation:
    """Decompose the mean of an item, and put it into words. `parts`: the ratings to list; None: those that the words name."""
    model, mean, score, explored = view.model, shown.mean, shown.score, shown.explored
    names, ledger = model.items.names, model.ledger
    rated, total, own = brief[0], brief[1], brief[2]
    if own == UNKNOWN:
        row = model.users.numbers.get(user)
        own = 0.0 if row is None else float(np.count_nonzero(rated_by(ledger, row) == number))
    ratings = ledger.item_ratings.item(number) if number < len(names) else 0
    named = [Contribution(names[int(brief[at])], brief[at + 1], brief[at + 2]) for at in NAMED_AT if brief[at] >= 0]
    said = _sentences(view, number, ratings, named, explored)
    if parts is None:
        parts = named
    base = mean - total if rated > 0 else None
    others = total - sum([one.part for one in parts]) if len(parts) < rated else 0.0
    now, after = widths
    return ItemExplanation(shown.item, mean, score - mean, score, ratings, int(own), explored, now, after, base, parts, others, said)


def _contribution(view: Overlay, item: int, rating: float, part: float) -> Contribution:
    return Contribution(view.model.items.names[item], None if rating != rating else rating, part)


def _sentences(view: Overlay, item: int, ratings: int, named: list[Contribution], explored: bool) -> list[str]:
    """`named`: ratings by the user that speak for the item: all liked, or none of them."""
    if ratings < FEW:  # then the user's ratings show that they rate high, not that they would like this item
        return ["new, so we try it"]
    said = []
    if named:
        liked = "liked" if (named[0].rating or 0.0) >= view.average else "did not like"
        said.append(f"because you {liked} {' and '.join([one.item for one in named])}")
    if view.model.ledger.item_sums.item(item) >= ratings * view.popular:
        said.append("popular with everybody")
    if explored:
        said.append("shown by chance, so that we learn")
    return said or ["the best guess so far"]


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
