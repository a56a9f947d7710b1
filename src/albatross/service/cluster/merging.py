"""Which shards get which part of a request, and how their answers are merged."""

import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from albatross.service.api.answers import Answer, BatchAccepted, Refusal, SnapshotTaken, Version
from albatross.service.api.errors import BadValue, NotFound, Refused
from albatross.service.api.requests import (
    AskDisk,
    AskSeries,
    AskVersion,
    Feedback,
    FeedbackBatch,
    ForgetUser,
    JoinUsers,
    ListEvents,
    ListItems,
    ListUsers,
    LookBack,
    Recommend,
    Request,
    RestoreItem,
    RetireItem,
    SetRewards,
    SimilarItems,
    Suppose,
    TakeBackup,
    TakeSnapshot,
    UpsertItem,
    UpsertItems,
    Verify,
    ViewDecision,
    ViewUser,
)
from albatross.service.api.views import Disk, EventList, ListedUser, UserList, VerifyReport
from albatross.service.cluster.placing import shard_of_decision, shard_of_feedback
from albatross.service.engine.learned.series import SeriesKeeper
from albatross.service.engine.learned.visitors import Moved
from albatross.service.engine.sharing import AskSums, FollowCatalogue, Sums
from albatross.service.engine.tickets import Settled
from albatross.service.storage.placing import shard_of

_turns = itertools.count()
"""Visitors without an id go to the shards in turn."""
PLACES = 2**40
"""A position in the list of users: the shard times this, plus the position there."""

Directed = tuple[int, Request[Any]]
"""A shard, and what it is asked."""


class Plan(NamedTuple):
    """The parts of several shards in one request."""

    parts: Sequence[Directed]
    merge: Callable[[list[Settled]], "Answer | Plan"]
    """Returns the answer, or what must be asked next."""


def plan_of(request: Request[Any], shards: int) -> int | Plan:
    """The shard that answers a request, or the plan for several. Raises `Refused` if several shards cannot answer it."""
    if isinstance(request, JoinUsers):
        return shard_of(request.visitor, shards)
    if isinstance(request, Recommend) and request.user is None:  # that shard makes an id; asked again by its id, it is the same shard
        return next(_turns) % shards if request.request_id is None else shard_of(request.request_id, shards)
    if isinstance(request, Recommend):
        return shard_of(request.whom, shards)
    if isinstance(request, ViewUser | ForgetUser | Suppose):
        return shard_of(request.user, shards)
    if isinstance(request, Feedback):
        return shard_of_feedback(request, shards)
    if isinstance(request, FeedbackBatch):
        return _batch(request, shards)
    if isinstance(request, UpsertItem | UpsertItems | RetireItem | RestoreItem | SetRewards):
        others = [(shard, FollowCatalogue()) for shard in range(1, shards)]
        return Plan([(0, request)], lambda settled: _then(_only(settled), others))
    if isinstance(request, ViewDecision):
        return shard_of_decision(request.decision_id, shards) or 0
    if isinstance(request, ListItems):
        return 0 if request.user is None else shard_of(request.user, shards)
    if isinstance(request, ListUsers):
        return _users(request, shards)
    if isinstance(request, ListEvents):
        return _events(request, shards)
    if isinstance(request, AskSeries):
        return Plan([(shard, AskSums()) for shard in range(shards)], _series)
    if isinstance(request, LookBack):
        return _past(request, shards)
    if isinstance(request, ANYWHERE):
        return 0
    merge = WHOLE.get(type(request))
    if merge is None:
        raise BadValue(f"{type(request).__name__} cannot be answered where there are {shards} shards; accepted: a service of one shard")
    return Plan([(shard, request) for shard in range(shards)], merge)


def _then(answer: Answer, parts: Sequence[Directed]) -> Plan:
    """The answer, after all of these have been done."""
    return Plan(parts, lambda settled: all_of(settled, answer))


def _after(plan: Plan, use: Callable[[Any], Answer]) -> Plan:
    """A plan, and then a use of its answer."""

    def merge(settled: list[Settled]) -> Answer | Plan:
        found = plan.merge(settled)
        return _after(found, use) if isinstance(found, Plan) else use(found)

    return Plan(plan.parts, merge)


def _batch(request: FeedbackBatch, shards: int) -> Plan:
    """Each rating to its shard; answers in the order of the ratings. If a shard refuses, only its ratings are refused."""
    places: dict[int, list[int]] = {}
    for place, event in enumerate(request.events):
        places.setdefault(shard_of_feedback(event, shards), []).append(place)
    parts = [(shard, FeedbackBatch([request.events[place] for place in found])) for shard, found in sorted(places.items())]

    def merge(settled: list[Settled]) -> BatchAccepted | Plan:
        failed = [one for one in settled if isinstance(one, BaseException)]
        if failed and len(failed) == len(settled):
            raise failed[0]
        answers: list[Any] = [None] * len(request.events)
        for (_, found), one in zip(sorted(places.items()), settled, strict=True):
            if isinstance(one, BatchAccepted):
                told: Sequence[Any] = one.answers
            elif isinstance(one, Refused):
                told = [Refusal(one.status, one.code, str(one))] * len(found)
            else:
                raise _error(one)
            for place, answer in zip(found, told, strict=True):
                answers[place] = answer
        moved = [place for place, answer in enumerate(answers) if isinstance(answer, Refusal) and answer.code == Moved.code]
        if not moved:
            return BatchAccepted(answers)
        again = FeedbackBatch([replace(request.events[place], user=answers[place].detail) for place in moved])

        def insert(later: BatchAccepted) -> BatchAccepted:
            for place, last in zip(moved, later.answers, strict=True):
                answers[place] = last
            return BatchAccepted(answers)

        return _after(_batch(again, shards), insert)

    return Plan(parts or [(0, request)], merge if parts else _only)


def _users(request: ListUsers, shards: int) -> Plan:
    """Shard by shard, users in their order there; the next shard is added only if all its users fit."""
    current, position = divmod(request.after, PLACES)
    parts: list[Directed] = []
    for shard in range(shards):
        after = position if shard == current else 0
        parts.append((shard, replace(request, after=after) if shard >= current else replace(request, after=0, n=1)))

    def merge(settled: list[Settled]) -> UserList:
        lists = _all(settled, UserList)
        users: list[ListedUser] = []
        following = None
        for shard in range(min(current, shards), shards):
            if shard > current and len(users) + len(lists[shard].users) > request.n:
                following = shard * PLACES
                break
            users += lists[shard].users
            if lists[shard].next is not None:
                following = shard * PLACES + lists[shard].next
                break
        return UserList(users, following, sum(one.total for one in lists), sum(one.model_seq for one in lists))

    return Plan(parts, merge)


def _events(request: ListEvents, shards: int) -> Plan:
    """The events of one shard by number; or the newest of all, by time."""
    if request.shard is not None:
        if request.shard >= shards:
            raise NotFound(f"shard is {request.shard}; accepted: 0 to {shards - 1}")
        asked = [request.shard]
    elif request.before is not None:
        raise BadValue(f"before is {request.before}, and each of {shards} shards has numbers of its own; accepted: together with shard")
    else:
        asked = list(range(shards))

    def merge(settled: list[Settled]) -> EventList:
        lists = _all(settled, EventList)
        events = [replace(event, shard=shard) for shard, one in zip(asked, lists, strict=True) for event in one.events]
        if len(asked) > 1:
            events.sort(key=lambda event: event.at or 0.0, reverse=True)
        return EventList(events[: request.n], sum(one.seq for one in lists))

    return Plan([(shard, replace(request, shard=shard)) for shard in asked], merge)


def _past(request: LookBack, shards: int) -> int:
    """The shard whose log is meant: each has its own events and numbers."""
    home = None if request.user is None else shard_of(request.user, shards)
    asked = home if request.shard is None else request.shard
    if asked is None:
        raise BadValue(f"shard is missing, and there are {shards} shards, each with numbers of its own; accepted: 0 to {shards - 1}")
    if asked >= shards:
        raise NotFound(f"shard is {asked}; accepted: 0 to {shards - 1}")
    if home not in (None, asked):
        raise BadValue(f"shard is {asked}, and this user lives on shard {home}; accepted: {home}")
    return asked


def _version(settled: list[Settled]) -> Version:
    versions: list[Version] = _all(settled, Version)
    states = [one.state_id for one in versions]
    known = None not in states
    return replace(
        versions[0],
        seq=sum(one.seq for one in versions),
        chain=_together([one.chain for one in versions]),
        state_id=_together(states) if known else None,
        state_seq=sum(one.state_seq or 0 for one in versions) if known else None,
        users=sum(one.users for one in versions),
        items=min(one.items for one in versions),
        retired=min(one.retired for one in versions),
        ratings=sum(one.ratings for one in versions),
        decisions=sum(one.decisions for one in versions),
        item_version=min(one.item_version for one in versions),
    )


def _series(settled: list[Settled]) -> Answer:
    keepers = []
    for one in _all(settled, Sums):
        keeper = SeriesKeeper()
        keeper.width, keeper.count, keeper.sums = one.width, one.count, np.array(one.sums)
        keepers.append(keeper)
    return SeriesKeeper.merged(keepers).series()


def _disk(settled: list[Settled]) -> Disk:
    disks: list[Disk] = _all(settled, Disk)
    states = [one.state_id for one in disks]
    return replace(
        disks[0],  # each of them reports the size of all logs
        snapshot_seq=sum(one.snapshot_seq for one in disks),
        state_id=None if None in states else _together(states),
        seq=sum(one.seq for one in disks),
    )


def _snapshots(settled: list[Settled]) -> SnapshotTaken:
    taken = _all(settled, SnapshotTaken)
    return SnapshotTaken(sum(one.seq for one in taken), _together([one.state_id for one in taken]), ", ".join(one.path for one in taken))


def _verdict(settled: list[Settled]) -> VerifyReport:
    reports = _all(settled, VerifyReport)
    wrong = [f"shard {shard}: {one.detail}" for shard, one in enumerate(reports) if one.detail is not None]
    return VerifyReport(
        passed=all(one.passed for one in reports),
        seq=sum(one.seq for one in reports),
        chain=_together([one.chain for one in reports]),
        state_id=_together([one.state_id for one in reports]),
        ratings=sum(one.ratings for one in reports),
        decisions=sum(one.decisions for one in reports),
        confirmed=[seq for one in reports for seq in one.confirmed],
        contradicted=[seq for one in reports for seq in one.contradicted],
        skipped=sum(one.skipped for one in reports),
        seconds=max(one.seconds for one in reports),
        detail="; ".join(wrong) or None,
    )


WHOLE: dict[type[Request[Any]], Callable[[list[Settled]], Answer]] = {
    AskVersion: _version,
    AskDisk: _disk,
    TakeSnapshot: _snapshots,
    Verify: _verdict,
}
"""Sent to every shard unchanged."""

ANYWHERE = (SimilarItems, TakeBackup)
"""Every shard gives the same answer."""


def may_be_old(request: Request[Any]) -> bool:
    """Whether a shard's last answer may be shown while it is restarted: these requests only monitor."""
    return isinstance(request, AskSums | AskDisk | ListEvents) or (isinstance(request, AskVersion) and request.state == "none")


def _only(settled: list[Settled]) -> Any:
    (answer,) = _all(settled, Answer)
    return answer


def all_of(settled: list[Settled], answer: Answer) -> Answer:
    """An answer, if nobody has refused; otherwise raises the first error."""
    _all(settled, Answer)
    return answer


def _all(settled: list[Settled], kind: type[Any]) -> list[Any]:
    """The answers of all; raises the error of the first that failed."""
    for one in settled:
        if not isinstance(one, kind):
            raise _error(one)
    return settled


def _error(one: Settled) -> BaseException:
    return one if isinstance(one, BaseException) else TypeError(f"a shard has answered {type(one).__name__}")


def _together(names: Sequence[str | None]) -> str:
    """One id for all of these."""
    return hashlib.blake2b(" ".join(map(str, names)).encode(), digest_size=16).hexdigest()
