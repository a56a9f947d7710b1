"""From the model and the log to answers."""

import functools
import hashlib
import shutil
from pathlib import Path

from msgspec import Raw

from albatross.core.state import flatten
from albatross.core.version import VERSION
from albatross.service.api.answers import Decision, Explanation, Version
from albatross.service.api.views import Disk
from albatross.service.engine.deciding.reasoning import shown_items
from albatross.service.engine.learned.model import Model
from albatross.service.engine.learned.snapshots import kernel_of
from albatross.service.storage.events import Decided, Genesis
from albatross.service.storage.mark import Head
from albatross.service.storage.store import Store

CHEAP_BYTES = 1 << 23
"""Computing the state id of a state up to this size takes milliseconds."""


def decision_name(incarnation: str, seq: int) -> str:
    """A decision's number, and a few letters that depend on this incarnation of the engine, so that a wrong id finds nothing.

    With several shards, the last number is that of the shard, which is part of the incarnation, after a dot.
    """
    life, shard = _life_and_shard(incarnation)
    return f"{seq}-{hashlib.blake2b(b'%b %d' % (life, seq), digest_size=4).hexdigest()}{shard}"


@functools.lru_cache(maxsize=64)
def _life_and_shard(incarnation: str) -> tuple[bytes, str]:
    _, _, shard = incarnation.partition(".")
    return incarnation.encode(), f"-{shard}" if shard else ""


def decision_of(genesis: Genesis, seq: int, event: Decided, explanation: Explanation | Raw | None = None) -> Decision:
    """The answer, after the event is in the log. An explanation that is JSON already is for an answer that becomes JSON."""
    name, items = decision_name(event.incarnation or genesis.folder, seq), shown_items(event.items)
    return Decision(name, event.user, genesis.policy, event.model_seq, items, event.user_ratings, explanation, event.item_version)  # type: ignore[arg-type]


def version_of(model: Model, head: Head, durability: str, state: str, known: tuple[int, str] | None) -> Version:
    """What is served. `known` is the last computed state id, with its event."""
    if state == "none":
        known = None
    elif state == "now" or _is_cheap(model):
        known = (model.seq, model.state_id)
    return Version(
        version=VERSION,
        policy=model.genesis.policy,
        parameters=model.policy.parameters(),
        scale=model.genesis.scale,
        seed=model.genesis.seed,
        seq=head.seq,
        chain=head.chain.hex(),
        state_id=None if known is None else known[1],
        state_seq=None if known is None else known[0],
        kernel=kernel_of(model),
        users=model.n_users,
        items=len(model.items),
        retired=len(model.retired),
        ratings=model.ratings,
        decisions=model.decisions,
        durability=durability,
        events=dict(model.rewards),
        item_version=model.version,
        shards=model.genesis.shards,
    )


def disk_of(folder: Path, store: Store, known: tuple[int, str] | None) -> Disk:
    """Disk usage of a service. `known` is the newest snapshot: its event and its state id."""
    seq, state_id = (0, None) if known is None else known
    return Disk(store.size(), _free_bytes(folder), seq, state_id, store.head.seq)


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _is_cheap(model: Model) -> bool:
    return sum(array.nbytes for _, array in flatten(model.agent.state)) <= CHEAP_BYTES
