"""Verification of a folder: the model rebuilt from the log alone, compared with all snapshots."""

from pathlib import Path
from typing import NamedTuple

from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.deciding.ruling import decide, request_of
from albatross.service.engine.learned.snapshots import kernel_of
from albatross.service.engine.recovering.recovery import apply_log, begun
from albatross.service.storage.events import Based, Decided, Genesis, erased_by
from albatross.service.storage.reading import Progress, base_of, check_handles, nothing, read_events
from albatross.service.storage.snapshots import manifests
from albatross.service.storage.store import ReadableLog


class Verdict(NamedTuple):
    seq: int
    chain: str
    state_id: str
    ratings: int
    decisions: int
    confirmed: list[int]
    """Events at which a snapshot has exactly the state that the log gives."""
    contradicted: list[int]
    skipped: list[str]
    """Snapshots that cannot be compared, with the reason."""
    base: int
    """Versions up to this one were taken as one, because they are not kept one by one; 0: every one was folded in its place."""


def verify(log: ReadableLog, folder: Path, genesis: Genesis, progress: Progress = nothing) -> Verdict:
    """Rebuild the model from the log alone, and check every row, every handle and every snapshot."""
    sound, skipped = manifests(folder)
    model, base = begun(log, genesis), base_of(log)
    comparable = {}
    for path, manifest in sound:
        if manifest.seq > log.head.seq:
            continue  # written since the log was opened here
        chain = log.chain_at(manifest.seq)
        if manifest.kernel != kernel_of(model):
            skipped.append(f"{path} was written by another version of the code")
        elif chain is None or chain.hex() != manifest.chain:
            skipped.append(f"{path} belongs to another log")
        elif base is not None and manifest.seq < base[0]:
            skipped.append(f"{path} is from before versions up to {base[1].version} were put together")
        else:
            comparable[manifest.seq] = manifest.state_id
    confirmed: list[int] = []
    contradicted: list[int] = []
    for seq in sorted(comparable):
        apply_log(log, model, progress, until=seq)
        (confirmed if model.state_id == comparable[seq] else contradicted).append(seq)
    apply_log(log, model, progress)
    check_handles(log)
    heads = (log.head.seq, log.head.chain.hex(), model.state_id, model.ratings, model.decisions)
    return Verdict(*heads, confirmed, contradicted, skipped, model.base)


class Redecided(NamedTuple):
    same: int
    different: list[int]
    """Decisions that come out differently."""
    unknowable: int
    """Decisions of another policy, or by a model of which a part was erased since."""


def redecide(log: ReadableLog, genesis: Genesis, progress: Progress = nothing) -> Redecided:
    """Repeat every decision of the log with the model of that time."""
    model, same, unknowable = begun(log, genesis), 0, 0
    model.read_version = log.version
    model.agent.search(True)  # every decision is made again
    different: list[int] = []
    forgotten = max((seq for seq, event in read_events(log, checked=False) if erased_by(event) or isinstance(event, Based)), default=0)
    for seq, event in read_events(log, progress):
        if isinstance(event, Decided):
            if seq <= max(forgotten, genesis.inherited):
                unknowable += 1
            else:
                model.learn()
                again, _ = decide(Overlay(model), request_of(event), seq, event.model_seq, event.at)
                if again.items == event.items:
                    same += 1
                else:
                    different.append(seq)
        model.fold_all([seq], [event])
    return Redecided(same, different, unknowable)
