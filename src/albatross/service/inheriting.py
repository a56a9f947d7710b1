"""A new folder that begins with the whole log of another, under another policy: a warm start."""

import time
from pathlib import Path

import msgspec

from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.kernels.compiling import source_fingerprint
from albatross.service.events import Forget, Genesis, encode
from albatross.service.log import FolderLock, Row, SQLiteLog, Store
from albatross.service.model import check_servable
from albatross.service.recovery import Progress, nothing


def inherit(store: Store, genesis: Genesis, policy: Policy, target: Path, progress: Progress = nothing) -> None:
    """Write a folder with the same events at the same numbers: ids of events and of decisions stay what they were."""
    check_servable(policy)
    if target.exists():
        raise InvalidInput(f"{target} exists already; accepted: the name of a folder to make")
    unfinished = target.with_name(target.name + ".unfinished")
    lock = FolderLock(unfinished)
    new = SQLiteLog(unfinished)
    try:
        if new.head.seq:
            raise InvalidInput(f"{unfinished} was left behind by a run that was interrupted; remove it first")
        begun = msgspec.structs.replace(
            genesis,
            policy=policy.policy_name(),
            parameters=policy.parameters(),
            kernel=source_fingerprint(type(policy)),
            inherited=store.head.seq,
        )
        keys = {seq: (key, content) for key, seq, content in store.key_rows()}
        nobody = encode(Forget(time.time(), []))
        for first, bodies in store.read():
            rows = []
            for seq, body in enumerate(bodies, start=first):
                # Of an erased event the number and the key stay: the same delivery must not count now.
                key, content = keys.get(seq, (None, b""))
                rows.append(Row(encode(begun) if seq == 1 else body or nobody, key, content))
            new.append(rows)
            progress(first + len(bodies) - 1, store.head.seq)
    finally:
        new.close()
        lock.release()
    unfinished.rename(target)
