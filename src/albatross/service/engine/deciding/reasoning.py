"""Why an item was shown, in numbers and in words: from exact contributions of the user's ratings, and from everybody's ratings."""

import sys
from collections.abc import Sequence

import numpy as np
from msgspec.structs import asdict, astuple, replace

from albatross.core.agent import Agent
from albatross.core.asking.accounts import MOST_PARTS, Report
from albatross.kernels.accounting import BRIEF, UNKNOWN
from albatross.kernels.pairs import NOTHING
from albatross.service.api.answers import ConfidenceRegion, Contribution, Explanation, ItemExplanation, ShownItem
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.learned.ledger import rated_by
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Part, Placed, ReasonForItem, Reasons, Region

LARGEST = sys.float_info.max
FEW = 3
"""An item with fewer ratings is called new."""
CLOSE = 5
"""Number of listed items that were not shown."""


def explain(
    view: Overlay, agent: Agent, user: str, pending: Sequence[int], placed: list[Placed], best: list[list[float]], whole: bool
) -> Explanation:
    """Why these items were placed. `best`: number, score and mean of the best ranked for the last place."""
    model = view.model
    numbers = [view.number_of(one.item) or 0 for one in placed]
    row, known, random, average = model.row_of(user), user in model.users.numbers, model.turner.random, view.average
    if whole:
        return explained(view, user, pending, placed, numbers, best, model.accounts.of(agent, random, row, known, numbers, average))
    briefs = model.accounts.reasons(agent, random, [row], known, [numbers], average)[0]
    return Explanation(model.ratings_of(user), [], reasons_for(view, [user] * len(placed), placed, numbers, briefs), None)


def explained(
    view: Overlay, user: str, pending: Sequence[int], placed: list[Placed], numbers: list[int], best: list[list[float]], report: Report
) -> Explanation:
    """Everything about the choice, from a report about the user and the items with these numbers."""
    items = []
    for place, told in enumerate(reasons_for(view, [user] * len(placed), placed, numbers, report.brief[: len(placed)])):
        now, after = report.widths[place]
        widths = (now, after) if after <= LARGEST else (None, None)
        parts, others = _listed(view, report, place)
        items.append(replace(told, width=widths[0], width_after=widths[1], parts=parts, others=others))
    return Explanation(view.model.ratings_of(user), view.names_of(pending), items, region_of(report), _close(view, numbers, best))


def _listed(view: Overlay, report: Report, place: int) -> tuple[list[Contribution], float]:
    """The user's ratings with the largest contributions to the mean of an item, and the contribution of all others."""
    rated, names = report.sizes[1], view.model.items.names
    listed = range(min(report.sizes[2], MOST_PARTS)) if rated > 0 else range(0)
    largest, ratings, contributions = report.largest[place], report.ratings[place], report.largest_parts[place]
    parts = [Contribution(names[largest[at]], None if ratings[at] != ratings[at] else ratings[at], contributions[at]) for at in listed]
    return parts, report.brief[place][BRIEF.total] - sum([part.part for part in parts]) if len(parts) < rated else 0.0


def region_of(report: Report) -> ConfidenceRegion | None:
    """The confidence region of the user; None if the policy has none."""
    return None if report.sizes[0] == UNKNOWN else ConfidenceRegion(report.center, report.radius[0], report.inverse, report.axes)


def _close(view: Overlay, shown: list[int], best: list[list[float]]) -> list[ShownItem]:
    """The next items in rank, by the model of the decision."""
    close = [line for line in best if line[0] not in shown][:CLOSE]
    name_of = view.name_of
    return [ShownItem(name_of(int(item)), rank, score, mean, score - mean, None) for rank, (item, score, mean) in enumerate(close, 1)]


def reasons_for(
    view: Overlay, users: Sequence[str], placed: Sequence[Placed], numbers: Sequence[int], briefs: Sequence[Sequence[float]]
) -> list[ItemExplanation]:
    """Decompose the mean of each item, for one user each, and put it into words. Only the ratings that the words name are listed."""
    model, average, popular = view.model, view.average, view.popular
    names = model.items.names
    n_known, count_of, sum_of = len(names), model.ledger.item_ratings.item, model.ledger.item_sums.item
    reasons: list[ItemExplanation] = []
    for user, shown, number, brief in zip(users, placed, numbers, briefs, strict=True):
        rated, total, own, first, first_rating, first_part, second, second_rating, second_part = brief
        mean, score, explored, others = shown.mean, shown.score, shown.explored, total
        parts: list[Contribution] = []
        named = ""
        again = first == number or second == number
        if first != NOTHING:
            parts.append(Contribution(names[int(first)], first_rating, first_part))
            others -= first_part
            if second != NOTHING:
                parts.append(Contribution(names[int(second)], second_rating, second_part))
                others -= second_part
            named = " and ".join([part.item for part in parts if not again or part.item != shown.item])
        ratings = count_of(number) if number < n_known else 0
        why: list[str] = []
        if ratings < FEW:  # then the user's ratings show that they rate high, not that they would like this item
            why.append("new, so we try it")
        else:
            if again:
                why.append("you liked it before" if first_rating >= average else "you have rated it before")
            if named:
                why.append(f"because you liked {named}" if first_rating >= average else f"because you did not like {named}")
            if sum_of(number) >= ratings * popular:
                why.append("popular with everybody")
            if explored:
                why.append("shown by chance, so that we learn")
        if own == UNKNOWN:
            own = _times_rated(model, user, number)
        base = mean - total if rated > 0 else None
        others = others if len(parts) < rated else 0.0
        why = why or ["the best guess so far"]
        reasons.append(
            ItemExplanation(shown.item, mean, score - mean, score, ratings, int(own), explored, None, None, base, parts, others, why)
        )
    return reasons


def _times_rated(model: Model, user: str, item: int) -> int:
    row = model.users.numbers.get(user)
    return 0 if row is None else int(np.count_nonzero(rated_by(model.ledger, row) == item))


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
