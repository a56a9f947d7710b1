"""From a folder to a model: the newest valid snapshot and the rest of the log, or the log alone."""

from pathlib import Path
from typing import NamedTuple

from albatross.core.errors import InvalidInput
from albatross.service.engine.learned import snapshots
from albatross.service.engine.learned.model import Model
from albatross.service.storage.events import Expire, Genesis, erased_by
from albatross.service.storage.reading import (
    NO_HANDLES,
    Progress,
    Sum,
    base_of,
    check_erased,
    check_handles,
    decoded,
    less,
    nothing,
    sum_of_events,
    sum_of_table,
)
from albatross.service.storage.snapshots import Manifest, manifests
from albatross.service.storage.store import DamagedLog, ReadableLog


class Recovered(NamedTuple):
    model: Model
    snapshot: Manifest | None
    """The snapshot that was used."""
    handles: Sum
    """Sum of the handles of all events."""
    complaints: list[str]
    """Why snapshots were skipped."""


def recover(folder: Path, log: ReadableLog, genesis: Genesis, progress: Progress = nothing, use_snapshots: bool = True) -> Recovered:
    """Check the whole log and its handles, and apply what the newest valid snapshot does not contain."""
    model, used, complaints = _newest(folder, log, genesis) if use_snapshots else (None, None, [])
    if model is None:
        model = begun(log, genesis)
    handles = apply_log(log, model, progress, handles=NO_HANDLES if used is None else used.handles)
    if handles != sum_of_table(log):
        check_handles(log)
        raise DamagedLog(f"{folder} is damaged: events and handles do not fit together")
    return Recovered(model, used, handles, complaints)


def _newest(folder: Path, log: ReadableLog, genesis: Genesis) -> tuple[Model | None, Manifest | None, list[str]]:
    sound, complaints = manifests(folder)
    for path, manifest in sound:
        chain = log.chain_at(manifest.seq)
        if chain is None or chain.hex() != manifest.chain:
            complaints.append(f"{path} belongs to another log")
            continue
        try:
            model = snapshots.load(path, manifest, genesis)
        except InvalidInput as error:
            complaints.append(str(error))
            continue
        if model.base == log.base_version():
            return model, manifest, complaints
        complaints.append(f"{path} is from before versions up to {log.base_version()} were put together")
    return None, None, complaints


def begun(log: ReadableLog, genesis: Genesis) -> Model:
    """A model that knows nothing but what stands for the first versions, if anything does."""
    model, found = Model(genesis), base_of(log)
    if found is not None:
        seq, event = found
        base = log.base(event.version)
        if base.digest != event.digest:
            raise DamagedLog(f"the base of version {event.version} is not the one that event {seq} of the log was written for")
        model.begin_from(base)
    return model


def apply_log(log: ReadableLog, model: Model, progress: Progress = nothing, until: int | None = None, handles: Sum = NO_HANDLES) -> Sum:
    """Check all events, or all up to `until`, and apply those that the model does not know.

    Returns the given sum plus the handles of the applied events.
    """
    model.read_version = log.version
    total, known = log.head.seq if until is None else until, model.seq
    erased: set[int] = set()
    for first, bodies in log.read():
        bodies = bodies[: total - first + 1]
        last = first + len(bodies) - 1
        if last > known:
            seqs, events = decoded(first, bodies, known)
            if len(seqs) < len(bodies):
                gone = set(range(max(first, known + 1), last + 1)).difference(seqs)
                erased |= gone
                model.passed_over |= gone
            handles = sum_of_events(seqs, events, handles)
            for event in events:
                if type(event) is Expire:  # of those that were counted before they were erased
                    counted = [dropped for dropped in event.decisions if dropped.seq not in erased]
                    handles = less(handles, [(bytes.fromhex(one.handle), one.seq) for one in counted if one.handle is not None])
                erased.difference_update(erased_by(event))
            model.fold_all(seqs, events)
            model.seq = last
        progress(last, total)
        if last == total:
            break
    model.learn()
    if until is None:
        check_erased(erased)
    return handles
