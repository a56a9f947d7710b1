"""Ratings and named events: each counts once, and a later answer to the same item of a decision replaces the earlier one."""

from collections.abc import Callable

from albatross.core.errors import InvalidInput
from albatross.service.api.answers import Accepted, BatchAccepted, RewardsAccepted
from albatross.service.api.errors import AlreadyRated, BadValue, Refused, UnknownItem
from albatross.service.api.requests import Feedback, FeedbackBatch, SetRewards
from albatross.service.api.values import MOST_EVENTS, check_count
from albatross.service.engine.checking import check_feedback
from albatross.service.engine.group import Finish, Group
from albatross.service.engine.handling.attempting import attempt
from albatross.service.engine.learned.reacting import Earlier, check_replaces, check_rewards, content_of_request, reaction, reward_of
from albatross.service.engine.learned.silence import GiveUp, Hushed
from albatross.service.engine.viewing.logged import find_decision
from albatross.service.storage.events import SILENCE, Decided, Placed, Rated, Reacted, Rewards, decode
from albatross.service.storage.handles import content_of, event_handle, rewards_handle
from albatross.service.storage.migration import ANSWERED
from albatross.service.storage.numbering import answering_handle, answers_before, last_number


def feedback(group: Group, request: Feedback) -> Callable[[], Accepted]:
    check_feedback(request, group.model.users, group.model.items)
    handle = event_handle(request.event_id)
    rating = _worth(group, request, handle)
    content = content_of(content_of_request(request, rating))
    known = group.known(handle, content, "event_id")
    if known is not None:
        return _known_before(group, handle, known)
    rated = _answer(group, _rated(group, request, rating), request.event)
    if isinstance(rated, Rated) or rated.replaces is None:
        _check_rated(group, rated)
    place = len(group.late)
    handles = [(handle, content)]
    group.fresh[handle] = (place, content)
    if rated.decision is not None:
        answer = answering_handle(rated.decision, rated.item, rated.number if isinstance(rated, Reacted) else 0)
        handles.append((answer, ANSWERED))
        group.fresh[answer] = (place, ANSWERED)
    group.late.append((rated, handles))
    return lambda: Accepted(group.seqs[place], True, False, group.model.seq)


def _known_before(group: Group, handle: bytes, known: int) -> Callable[[], Accepted]:
    """The answer to a repeated delivery: in this group, then `known` is a place in it, or of an event in the log."""
    if handle in group.fresh:
        return lambda: Accepted(group.seqs[known], applied=True, duplicate=True, model_seq=group.model.seq)
    present = group.store.body(known) is not None
    return lambda: Accepted(known, applied=present, duplicate=True, model_seq=group.model.seq)


def feedback_batch(group: Group, request: FeedbackBatch) -> Finish:
    check_count("the number of events", len(request.events), 0, MOST_EVENTS)
    answers = [attempt(group, feedback, event) for event in request.events]
    return lambda: BatchAccepted([answer() for answer in answers])


def give_up(group: Group, request: GiveUp) -> Finish:
    """Apply silence to items without an answer."""
    before = len(group.late)
    for seq in request.decisions:
        decided = group.decided(seq)
        for placed in decided.items:
            handle = answering_handle(seq, placed.item, 0)
            if not group.is_taken(handle):
                said = (placed.item, SILENCE, request.reward, seq, *_predicted(decided, placed))
                silent = Reacted(group.now, "", group.model.visitors.known_as(decided.user), *said)
                _check_rated(group, silent)
                group.fresh[handle] = (len(group.late), ANSWERED)
                group.late.append((silent, ((handle, ANSWERED),)))
    items = len(group.late) - before
    return lambda: Hushed(items)


def set_rewards(group: Group, request: SetRewards) -> Finish:
    check_rewards(request.events, group.model.genesis.scale)
    try:
        check_replaces(group.model.genesis.policy, group.model.agent.state)
    except InvalidInput as error:
        raise BadValue(str(error)) from error
    events, seq = {name: float(reward) for name, reward in request.events.items()}, group.head
    if events != group.rewards:
        number = 1 + last_number(lambda number: group.is_taken(rewards_handle(number)))
        handle = rewards_handle(number)
        seq = group.put_early(Rewards(group.now, number, events), ((handle, ANSWERED),))
        group.rewards = events
    return lambda: RewardsAccepted(events, seq, group.model.seq)


def _worth(group: Group, request: Feedback, handle: bytes) -> float:
    """The rating, or the current reward of the event. A repeated event is recognised by its name, whatever its reward is now."""
    if request.event is not None and request.rating is None and (handle in group.fresh or handle in group.kept):
        return group.rewards.get(request.event, 0.0)
    return reward_of(request, group.model.genesis.scale, group.rewards)


def _answer(group: Group, rated: Rated, event: str | None) -> Rated | Reacted:
    """A rating as it is, or, if there was an answer before, as its replacement. Refuses a second rating."""
    if event is None:
        if rated.decision is None or not group.is_taken(answering_handle(rated.decision, rated.item, 0)):
            return rated
        only = answers_before(group.is_taken, rated.decision, rated.item) == 1
        if not (only and _earlier(group, answering_handle(rated.decision, rated.item, 0)).silent):
            raise AlreadyRated("this item of the decision has been rated; accepted: one rating for each item that a decision showed")
    return reaction(rated, event or "", group.is_taken, lambda handle: _earlier(group, handle))


def _earlier(group: Group, handle: bytes) -> Earlier:
    """The answer with this handle, which must exist."""
    if handle in group.fresh:
        place = group.fresh[handle][0]
        waiting = group.late[place][0]
        return Earlier(-1 - place, waiting.rating, not waiting.event_id)
    found = group.store.find(handle)
    body = None if found is None else group.store.body(found.seq)
    event = None if body is None else decode(body)
    assert found is not None  # as `answers_before` saw
    assert isinstance(event, Rated | Reacted)  # otherwise its decision would be erased too
    return Earlier(found.seq, event.rating, not event.event_id)


def _rated(group: Group, request: Feedback, rating: float) -> Rated:
    visitors = group.model.visitors
    if request.decision_id is None:
        assert request.user is not None  # as `check_feedback` saw
        assert request.item is not None
        return Rated(group.now, request.event_id, visitors.here(request.user), request.item, rating, None, None, None)
    seq, decision = find_decision(group.store, group.model.genesis, request.decision_id)
    user = visitors.known_as(decision.user)
    if request.user is not None and visitors.known_as(request.user) != user:
        raise BadValue("user is not the one this decision was made for; accepted: that one, or none")
    if request.item is None and len(decision.items) > 1:
        raise BadValue(f"item is missing; accepted: one of the {len(decision.items)} items of the decision")
    placed = next((placed for placed in decision.items if request.item in (None, placed.item)), None)
    if placed is None:
        raise BadValue("item is one that this decision did not show; accepted: an item of the decision")
    return Rated(group.now, request.event_id, user, placed.item, rating, seq, *_predicted(decision, placed))


def _predicted(decision: Decided, placed: Placed) -> tuple[float | None, float | None]:
    """Mean and score of an item that was shown, if the policy predicted them. Popularity and age are no predictions of a rating."""
    by_policy = decision.rules is None or decision.rules.by == "policy"
    return (placed.mean, placed.score) if by_policy else (None, None)


def _check_rated(group: Group, rated: Rated | Reacted) -> None:
    """The user and the item of a rating must exist, or it must be possible to add them."""
    view, model = group.view, group.model
    known = rated.item in model.items.numbers or view.number_of(rated.item) is not None or rated.item in view.late_items
    if not known and model.genesis.closed:
        raise UnknownItem(f"item is {rated.item!r}; accepted, as the catalogue is closed: an item that was upserted")
    view.late_ratings += 1
    stranger = not (rated.user in model.users.numbers or rated.user in view.late_users or rated.user in model.visitors.hosts)
    if known and not stranger and model.ratings + view.late_ratings <= model.room.ratings:
        return
    if not known:
        view.late_items.add(rated.item)
    if stranger:
        view.late_users.add(rated.user)
    try:
        view.check_room()
    except Refused:
        view.late_ratings -= 1
        if not known:
            view.late_items.discard(rated.item)
        if stranger:
            view.late_users.discard(rated.user)
        raise
