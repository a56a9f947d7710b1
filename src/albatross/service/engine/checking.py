"""Checks of a request that need no model: whether it is valid, and by which handles it may be known already."""

from collections.abc import Container
from typing import Any, get_args

from albatross.core.vocabulary import Vocabulary
from albatross.service.api.errors import BadValue
from albatross.service.api.requests import Feedback, FeedbackBatch, Recommend, Request
from albatross.service.api.rules import MOST_QUOTAS, By
from albatross.service.api.values import MOST_CANDIDATES, MOST_SHOWN, check_count, check_id
from albatross.service.engine.learned.filtering import check_where
from albatross.service.storage.handles import answer_handle, event_handle, request_handle

RANKINGS = get_args(By)
EXPLAINED = (False, True, "reasons")


def check_recommend(request: Recommend, items: Vocabulary) -> None:
    """Refuse a request that no model could answer. Names of known items need no check."""
    if request.user is not None:
        check_id("user", request.user)
    check_count("n", request.n, 1, MOST_SHOWN)
    if request.exclude_seen not in ("rated", "pending", "none"):
        raise BadValue(f"exclude_seen is {request.exclude_seen!r}; accepted: rated, pending, none")
    if request.explain not in EXPLAINED:
        raise BadValue(f"explain is {request.explain!r}; accepted: true, false, reasons")
    if request.request_id is not None:
        check_id("request_id", request.request_id)
    check_rules(request)
    if request.candidates is None and not request.exclude:
        return
    if request.candidates == []:
        raise BadValue("candidates is empty; accepted: at least one, or none at all for the whole catalogue")
    for what, names in (("candidate", request.candidates), ("exclude", request.exclude)):
        if names is not None and len(names) > MOST_CANDIDATES:
            raise BadValue(f"{what} is given {len(names)} times; accepted: at most {MOST_CANDIDATES}")
        for name in names or ():
            if name not in items.numbers:
                check_id(what, name)


def check_rules(request: Recommend) -> None:
    if request.where is not None:
        check_where(request.where)
    if len(request.quotas) > MOST_QUOTAS:
        check_count("the number of quotas", len(request.quotas), 0, MOST_QUOTAS)
    for quota in request.quotas:
        check_id("attribute", quota.attribute)
        check_count(f"the quota of {quota.attribute!r}", quota.most, 1, MOST_SHOWN)
    if request.fresh is not None:
        if not 0 < request.fresh.share <= 1:
            raise BadValue(f"the share of new items is {request.fresh.share!r}; accepted: a number above 0, up to 1")
        check_count("below", request.fresh.below, 1, 1_000_000)
    if request.by not in RANKINGS:
        raise BadValue(f"by is {request.by!r}; accepted: {', '.join(RANKINGS)}")


def handles_asked(request: Request[Any]) -> list[bytes]:
    """The handles by which a request may be known already."""
    if isinstance(request, Recommend):
        name = request.request_id
        return [] if name is None or not _is_text(name) else [request_handle(name)]
    if not isinstance(request, Feedback | FeedbackBatch):
        return []
    events = [request] if isinstance(request, Feedback) else request.events
    handles = [event_handle(event.event_id) for event in events if _is_text(event.event_id)]
    handles += [handle for event in events if (handle := answer_asked(event)) is not None]
    return handles


def answer_asked(request: Feedback) -> bytes | None:
    """The handle of the answer that a rating gives, as far as the request alone shows it."""
    if request.decision_id is None or request.item is None:
        return None
    digits = str(request.decision_id).partition("-")[0]
    if not _is_text(request.item) or not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        return None
    return answer_handle(int(digits), request.item)


def _is_text(name: str) -> bool:
    """Whether it can be encoded in UTF-8; other names are refused later."""
    try:
        name.encode()
    except (AttributeError, UnicodeEncodeError):
        return False
    return True


def is_likely_new(request: Request[Any], rewards: Container[str]) -> bool:
    """Whether it is feedback that is written without looking for its handle first: if the handle is taken, the log refuses it."""
    return (
        type(request) is Feedback
        and request.decision_id is None
        and (request.event is None or request.event in rewards)  # a repeated event is accepted also when its name is no longer known
    )


def check_feedback(request: Feedback, users: Vocabulary, items: Vocabulary) -> None:
    """Refuse feedback that is invalid whatever the log contains. Names of known users and items need no check."""
    check_id("event_id", request.event_id)
    user, item = request.user, request.item
    if request.decision_id is not None:
        check_id("decision_id", request.decision_id)
    elif user is None or item is None:
        raise BadValue("a rating needs a decision_id, or a user and an item")
    if user is not None and (type(user) is not str or user not in users.numbers):
        check_id("user", user)
    if item is not None and (type(item) is not str or item not in items.numbers):
        check_id("item", item)
