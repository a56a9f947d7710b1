"""How the model follows visitors who are joined with users, on this shard and from one shard to another."""

from typing import TYPE_CHECKING

import numpy as np

from albatross.core.errors import InvalidInput
from albatross.core.sharing.carrying import arrive, leave
from albatross.service.engine.learned.ledger import brought, corrected, joined, left, rated_since, renewed
from albatross.service.engine.learned.pending import still_pending
from albatross.service.engine.learned.visitors import check_joins
from albatross.service.storage.events import Arrived, Passed, Rated
from albatross.service.storage.store import DamagedLog

if TYPE_CHECKING:
    from albatross.service.engine.learned.model import Model


def fold_join(model: "Model", visitor: str, user: str) -> None:
    """Join a visitor with a user. A user without ratings gets the visitor's row."""
    check_joins(model.genesis.policy, model.agent.state)
    model.learn()
    model.visitors.join(visitor, user)
    row, own = model.users.numbers.get(visitor), model.users.numbers.get(user)
    if row is not None and own is None:
        model.users.rename(visitor, user)
    elif row is not None and own is not None:
        model.agent.join(own, row)
        joined(model.ledger, own, row)
        model.emptied += 1
    owner = model.users.numbers.get(user)
    model.pending.join(visitor, user, lambda seq: {} if owner is None else rated_since(model.ledger, owner, seq))


def fold_departure(model: "Model", visitor: str, user: str) -> None:
    """A visitor is joined with a user of another shard, and moves there."""
    model.learn()
    model.visitors.leave(visitor, user)
    row = model.users.numbers.get(visitor)
    if row is not None:
        leave(model.agent, row)
        left(model.ledger, row)
        model.emptied += 1
        model.lessons += 1
    model.pending.pop(visitor, None)


def fold_arrival(model: "Model", seq: int, event: Arrived) -> None:
    """A visitor of another shard moves here, and is joined with a user."""
    model.learn()
    if event.items:
        row = model.users.add(event.visitor)
        model.make_room(len(model.users) + 1, len(model.items))
        try:
            arrive(model.agent, row, event.rows)
        except InvalidInput as error:
            raise DamagedLog(f"the log is damaged at event {seq}: {error}") from error
        model.ledger = brought(model.ledger, row, np.array(event.items, np.int32), seq)
        model.series.skip(len(event.items))
        model.lessons += 1
    waiting = model.pending.pop(event.user, {})
    fold_join(model, event.visitor, event.user)
    for name in event.visitors:
        model.visitors.join(name, event.user)
    waiting = still_pending(waiting, event.pending, seq)  # as if shown now: two logs have no common order
    if waiting:
        model.pending[event.user] = waiting


def fold_passed(model: "Model", seq: int, event: Passed) -> None:
    """An answer to a decision of another shard."""
    if event.before is None:
        model.fold_all([seq], [Rated(event.at, "", event.user, event.item, event.rating, None, event.mean, event.score)])
        return
    model.learn()
    user, item = model.users.numbers[event.user], model.items.numbers[event.item]
    model.agent.replace(user, item, event.before, event.rating)
    corrected(model.ledger, item, event.rating - event.before)
    renewed(model.ledger, user, item, seq)
    model.lessons += 1
