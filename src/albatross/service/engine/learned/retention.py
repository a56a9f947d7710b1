"""Decisions without an answer are dropped from the log after some time, if the owner of the folder wants that.

They taught nothing, and take space. The user is then erased; how often an item was shown is kept.
"""

import time
from typing import NamedTuple

from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Decided, Dropped, Expire, decode
from albatross.service.storage.handles import handles_of
from albatross.service.storage.numbering import answering_handle
from albatross.service.storage.store import Store

LOOKS_AT_ONCE = 1024
"""Limit of rows of the log that are read at once, because requests wait."""


class Due(NamedTuple):
    event: Expire
    handles: list[list[bytes]]
    """Handles of each decision."""


def expired(model: Model, store: Store, seconds: float) -> Due | None:
    """The next decisions to drop. Remembers how far it has read."""
    now = time.time()
    dropped: list[Dropped] = []
    handles: list[list[bytes]] = []
    reached = model.expired
    for seq in range(reached + 1, min(reached + LOOKS_AT_ONCE, store.head.seq) + 1):
        body = store.body(seq)
        if body is not None and body.startswith(b'["decision"'):
            decided = decode(body)
            assert isinstance(decided, Decided)
            if decided.at + seconds > now:
                break
            items = [placed.item for placed in decided.items]
            if not any(store.find(answering_handle(seq, item, 0)) for item in items):
                handles.append(handles_of(decided))
                dropped.append(Dropped(seq, items, handles[-1][0].hex() if handles[-1] else None))
        reached = seq
    model.expired = reached
    return Due(Expire(now, dropped), handles) if dropped else None
