"""A new folder with the whole log of another one, under another policy: a warm start."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from albatross.core.errors import InvalidInput
from albatross.core.files import sync_folder
from albatross.core.policy import Policy
from albatross.kernels.compiling import source_fingerprint
from albatross.service.engine.learned.model import Model
from albatross.service.engine.learned.options import check_servable, name_in_log, source_of
from albatross.service.engine.recovering.recovery import apply_log
from albatross.service.storage.events import Genesis, encode
from albatross.service.storage.folder import LOG, make_folder, remove_unfinished
from albatross.service.storage.keyring import Keyring, copy_keys
from albatross.service.storage.reading import Progress, check_log, nothing
from albatross.service.storage.sqlite.log import create_log
from albatross.service.storage.sqlite.log_reader import LogReader
from albatross.service.storage.store import ReadableLog, Row


def change_policy(log: ReadableLog, genesis: Genesis, keys: Keyring, policy: Policy, target: Path, progress: Progress = nothing) -> None:
    """Write a folder with the same events under the same numbers, and with the same keys: ids of events and decisions stay valid."""
    check_servable(policy)
    if target.exists():
        raise InvalidInput(f"{target} exists already; accepted: the name of a folder to make")
    begun = replace(
        genesis,
        policy=name_in_log(policy),
        parameters=policy.parameters(),
        kernel=source_fingerprint(type(policy)),
        inherited=log.head.seq,
        outside=source_of(policy),
    )
    Model(begun)  # refuses an unusable policy before anything is written
    unfinished = target.with_name(f".{target.name}.unfinished")
    remove_unfinished(unfinished)
    try:
        make_folder(unfinished)
        create_log(unfinished, _rows(log, begun, progress))
        copy_keys(keys, unfinished)
        with contextlib.closing(LogReader(unfinished / LOG)) as copy:
            check_log(copy)
            apply_log(copy, Model(begun))  # refuses now a policy that cannot hold the whole log, not at every start
        unfinished.rename(target)
    except BaseException:
        remove_unfinished(unfinished)
        raise
    sync_folder(target.parent)


def _rows(log: ReadableLog, begun: Genesis, progress: Progress) -> Iterator[list[Row]]:
    handles: dict[int, list[tuple[bytes, bytes]]] = defaultdict(list)
    for part in log.handles():
        for handle, seq, content in part:
            handles[seq].append((handle, content))
    for first, bodies in log.read():
        # The number and handles of an erased event are kept, so that a late delivery of it does not count.
        yield [Row(encode(begun) if seq == 1 else body, handles.pop(seq, ())) for seq, body in enumerate(bodies, start=first)]
        progress(first + len(bodies) - 1, log.head.seq)
