"""Visitors: new ids, and joins of a visitor with a user."""

import hashlib
import itertools
from typing import cast

from albatross.core.errors import InvalidInput
from albatross.core.sharing.carrying import check_carries
from albatross.service.api.answers import UsersJoined
from albatross.service.api.errors import BadValue, UnknownUser
from albatross.service.api.requests import JoinUsers
from albatross.service.api.values import MOST_VISITORS, check_id
from albatross.service.engine.group import Finish, Group
from albatross.service.engine.learned.visitors import check_joins
from albatross.service.engine.moving import departure, shard_of_user
from albatross.service.storage.events import Decided, Joined, decode
from albatross.service.storage.placing import shard_of
from albatross.service.storage.store import FollowingStore

MADE = "visitor"
"""Prefix of ids made here."""


def visitor_name(incarnation: str, seq: int, shard: int = 0, shards: int = 1) -> str:
    """The id of the visitor of decision `seq`: its number, and letters that cannot be guessed without the engine's incarnation.

    With several shards, letters by which the id belongs to this shard: the first that do.
    """
    for attempt in itertools.count():
        secret = f"{incarnation} {MADE} {seq}" + (f" {attempt}" if attempt else "")
        name = f"{MADE}-{seq}-{hashlib.blake2b(secret.encode(), digest_size=8).hexdigest()}"
        if shard_of(name, shards) == shard:
            return name
    raise AssertionError


def join_users(group: Group, request: JoinUsers) -> Finish:
    """Runs in a group of its own, so the model is up to date."""
    check_id("visitor", request.visitor)
    check_id("user", request.user)
    model, visitor = group.model, request.visitor
    user, one, seq = _user_behind(group, request.user), _user_behind(group, visitor), group.head
    if one == user:  # joined before, one way or the other, or the same id twice
        return lambda: UsersJoined(visitor, user, joined=False, seq=seq, model_seq=model.seq)
    if one != visitor:
        raise BadValue("this visitor was joined with another user; accepted: a visitor who was not (ask for a new one when users change)")
    away = shard_of_user(model, user) != model.genesis.shard
    try:
        check_joins(model.genesis.policy, model.agent.state)
        if away:
            check_carries(model.agent)
    except InvalidInput as error:
        raise BadValue(str(error)) from error
    if not _is_known(group, visitor):
        raise UnknownUser("this visitor has no ratings and no recent recommendations; accepted: one that has")
    if len(model.visitors.of(user)) + len(model.visitors.of(visitor)) >= MOST_VISITORS:
        raise BadValue(f"this user would have more than {MOST_VISITORS:,} visitors; accepted: at most so many")
    if away:
        group.leaving = departure(group.now, visitor, user, model, group.store)
    seq = group.put_early(Joined(group.now, visitor, user, away))
    return lambda: UsersJoined(visitor, user, joined=True, seq=seq, model_seq=model.seq)


def _user_behind(group: Group, name: str) -> str:
    """The user whom a name stands for, who may live on another shard."""
    known = group.model.visitors.known_as(name)
    return known if group.model.genesis.shards == 1 else cast(FollowingStore, group.store).user_behind(known)


def _is_known(group: Group, visitor: str) -> bool:
    """Whether this id is known: it has ratings, pending items or joined visitors, or it was made here."""
    model = group.model
    if visitor in model.users or visitor in model.pending or model.visitors.of(visitor):
        return True
    made, _, digits = visitor.rpartition("-")[0].partition("-")
    if made != MADE or not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        return False
    body = group.store.body(int(digits))
    event = None if body is None else decode(body)
    return isinstance(event, Decided) and event.user == visitor
