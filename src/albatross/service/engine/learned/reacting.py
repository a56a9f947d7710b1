"""Named events (click, purchase): their rewards, and the earlier answer to the same decision and item that they replace."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from albatross.core.errors import InvalidInput
from albatross.kernels.operations import offers, replace
from albatross.service.api.errors import BadValue
from albatross.service.api.requests import Feedback
from albatross.service.api.values import MOST_REWARDS, brief, check_count, check_id, check_rating
from albatross.service.storage.events import Rated, Reacted
from albatross.service.storage.handles import RatingContent, ReactionContent
from albatross.service.storage.numbering import answering_handle, answers_before


class Earlier(NamedTuple):
    """The answer that an event replaces."""

    seq: int
    """Its number; for one that is not written yet, −1 − its place in the group."""
    rating: float
    silent: bool
    """Whether it is silence."""


def reward_of(request: Feedback, scale: tuple[float, float], rewards: Mapping[str, float]) -> float:
    """The reward of a rating or a named event. Refuses neither, both, and an unknown name."""
    if request.event is None:
        if request.rating is None:
            raise BadValue("rating is missing; accepted: a rating, or an event" if rewards else "rating is missing; accepted: a rating")
        check_rating(request.rating, scale)
        return float(request.rating)
    if request.rating is not None:
        raise BadValue("there is a rating and an event; accepted: one of them")
    check_id("event", request.event)
    if request.event not in rewards:
        names = ", ".join(rewards) or "none, as no events are mapped to rewards here (albatross serve --events, or POST /v1/rewards)"
        raise BadValue(f"event is {brief(request.event)}; accepted: {names}")
    return rewards[request.event]


def content_of_request(request: Feedback, rating: float) -> RatingContent | ReactionContent:
    """What a repeated delivery must agree with. For an event this is its name, because its reward may have changed."""
    if request.event is None:
        return RatingContent(request.event_id, rating, request.decision_id, request.user, request.item)
    return ReactionContent(request.event_id, request.event, request.decision_id, request.user, request.item)


def reaction(rated: Rated, event: str, exists: Callable[[bytes], bool], earlier: Callable[[bytes], Earlier]) -> Reacted:
    """A rating as a named event, which replaces the previous answer, if any: `earlier` finds it by its handle."""
    number, replaced = 0, None
    if rated.decision is not None:
        number = answers_before(exists, rated.decision, rated.item)
        replaced = earlier(answering_handle(rated.decision, rated.item, number - 1)) if number else None
    return Reacted(
        at=rated.at,
        event_id=rated.event_id,
        user=rated.user,
        item=rated.item,
        event=event,
        rating=rated.rating,
        decision=rated.decision,
        mean=rated.mean,
        score=rated.score,
        number=number,
        replaces=None if replaced is None else replaced.seq,
        before=None if replaced is None else replaced.rating,
    )


def check_rewards(rewards: Mapping[str, float], scale: tuple[float, float]) -> None:
    """Refuse invalid names and rewards."""
    check_count("the number of events", len(rewards), 1, MOST_REWARDS)
    for name, reward in rewards.items():
        check_id("event", name)
        try:
            check_rating(reward, scale)
        except BadValue as error:
            raise BadValue(f"the reward of {name!r}: {error}") from error


def check_replaces(policy: str, state: object, what: str = "events") -> None:
    """Refuse events, or silence, for a policy that cannot undo a rating."""
    if not offers(state, replace):
        raise InvalidInput(
            f"policy {policy!r} cannot take a rating back, and a later event replaces an earlier one; "
            f"accepted for {what}: a policy with the operation `replace`, such as mean-field, ids or alb"
        )
