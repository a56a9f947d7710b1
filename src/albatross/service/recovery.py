"""From a folder to a model: the newest sound snapshot and the tail of the log, or the log alone."""

import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import MsgspecError, Struct

from albatross.core.errors import InvalidInput, check_whole
from albatross.core.policy import Policy
from albatross.kernels.compiling import source_fingerprint
from albatross.policies.alb import ALB
from albatross.service import snapshot
from albatross.service.events import FORMAT, Decided, Event, Forget, Genesis, Rated, decode, decode_all, encode, event_key, request_key
from albatross.service.log import DamagedLog, Row, Store
from albatross.service.messages import BadValue, check_id
from albatross.service.model import Model, check_servable, policy_of

Progress = Callable[[int, int], None]
"""Is told how many events of how many are done."""

QUEUE = 4096
"""Requests that may wait, at most: beyond, a request is refused at once."""

FLOOR = 0.05
"""Share of decisions left to chance: true propensities for a price that could not be measured."""


class Options(Struct, frozen=True):
    """How a folder is to be served. What the log's first event fixes (policy, scale, seed, …) must agree with it, or be None."""

    policy: Policy | None = None
    """None: that of the folder; for a new folder, ALB."""
    scale: tuple[float, float] | None = None
    """Lowest and highest rating. Needed for a new folder."""
    seed: int | None = None
    """None: that of the folder; for a new folder, 0."""
    floor: float | None = None
    """Share of decisions left to chance. None: that of the folder; for a new folder, 0.05."""
    closed: bool | None = None
    """Whether items appear only by upsert. None: that of the folder; for a new folder, false."""
    items: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """Known from the beginning, in this order. Looked at only when the folder is new."""
    durability: str = "commit"
    """commit: on disk before it is acknowledged; relaxed: up to a second may be lost if the power fails."""
    queue: int = QUEUE
    snapshot_every: int = 100_000
    """Events between two snapshots; 0: only when asked and at the end."""


def nothing(done: int, total: int) -> None:
    """Progress that nobody watches."""


def genesis_of(store: Store, options: Options, where: str) -> Genesis:
    """The first event of a folder, written now if the folder is new. Refuses options that contradict it."""
    if options.durability not in ("commit", "relaxed"):
        raise InvalidInput(f"durability is {options.durability!r}; accepted: commit, relaxed")
    if store.head.seq == 0:
        genesis = new_genesis(options)
        store.append([Row(encode(genesis))])
        return genesis
    try:
        found = decode(store.body(1) or b"")
    except MsgspecError as error:
        raise DamagedLog(f"{where} is damaged at event 1: {error}") from error
    if not isinstance(found, Genesis) or found.format != FORMAT:
        raise InvalidInput(f"{where} does not begin as a log of this version does")
    given = {
        "policy": None if options.policy is None else (options.policy.policy_name(), options.policy.parameters()),
        "scale": None if options.scale is None else (float(options.scale[0]), float(options.scale[1])),
        "seed": options.seed,
        "floor": options.floor,
        "closed": options.closed,
    }
    policy = policy_of(found)
    fixed = {
        "policy": (policy.policy_name(), policy.parameters()),
        "scale": found.scale,
        "seed": found.seed,
        "floor": found.floor,
        "closed": found.closed,
    }
    for name, value in given.items():
        if value is not None and value != fixed[name]:
            hint = " (albatross replay builds a new folder under another policy)" if name == "policy" else ""
            raise InvalidInput(f"{name} is {value}; accepted: that of {where}, {fixed[name]}{hint}")
    return found


def new_genesis(options: Options) -> Genesis:
    if options.scale is None:
        raise InvalidInput("scale is missing; accepted for a new folder: the lowest and the highest rating, such as 1 and 5")
    low, high = float(options.scale[0]), float(options.scale[1])
    if not -1e9 <= low < high <= 1e9:
        raise InvalidInput(f"scale is {low:g} to {high:g}; accepted: two different numbers, the lowest rating first, at most 1e9 in size")
    floor = FLOOR if options.floor is None else float(options.floor)
    if not 0.0 <= floor <= 1.0:
        raise InvalidInput(f"floor is {floor:g}; accepted: a number from 0 to 1")
    seed = 0 if options.seed is None else options.seed
    check_whole("seed", seed, 0)
    policy = ALB() if options.policy is None else options.policy
    check_servable(policy)
    for kind, names in (("user", options.users), ("item", options.items)):
        for name in names:
            check_id(kind, name)
        if len(set(names)) < len(names):
            raise BadValue(f"{kind}s are named more than once; accepted: each once")
    return Genesis(
        at=time.time(),
        format=FORMAT,
        folder=secrets.token_hex(16),
        policy=policy.policy_name(),
        parameters=policy.parameters(),
        scale=(low, high),
        seed=seed,
        floor=floor,
        closed=bool(options.closed),
        kernel=source_fingerprint(type(policy)),
        users=list(options.users),
        items=list(options.items),
    )


class Recovered(NamedTuple):
    model: Model
    snapshot_seq: int
    """The event of the snapshot that was used; 0 for none."""
    complaints: list[str]
    """Why snapshots were skipped."""


def recover(folder: Path, store: Store, genesis: Genesis, progress: Progress = nothing, use_snapshots: bool = True) -> Recovered:
    """Check the whole log, and replay what the newest sound snapshot does not know."""
    model: Model | None = None
    complaints: list[str] = []
    if use_snapshots:
        model, complaints = _newest(folder, store, genesis)
    known = model.seq if model is not None else 0
    return Recovered(replay(store, Model(genesis) if model is None else model, progress), known, complaints)


def _newest(folder: Path, store: Store, genesis: Genesis) -> tuple[Model | None, list[str]]:
    sound, complaints = snapshot.manifests(folder)
    for path, manifest in sound:
        if manifest.seq > store.head.seq:
            raise DamagedLog(
                f"{folder}: the log ends at event {store.head.seq}, but {path.name} knows events up to {manifest.seq}: "
                f"the end of the log is lost. To serve what is left, remove the folder {snapshot.SNAPSHOTS}"
            )
        chain = store.chain_at(manifest.seq)
        if chain is None or chain.hex() != manifest.chain:
            complaints.append(f"{path} belongs to another log")
            continue
        try:
            return snapshot.load(path, manifest, genesis), complaints
        except InvalidInput as error:
            complaints.append(str(error))
    return None, complaints


def replay(store: Store, model: Model, progress: Progress = nothing, until: int | None = None) -> Model:
    """Check all events there are, or all up to `until`, and fold those that the model does not know."""
    total, known = store.head.seq if until is None else until, model.seq
    erased: set[int] = set()
    for first, bodies in store.read():
        bodies = bodies[: total - first + 1]
        last = first + len(bodies) - 1
        if last > known:
            seqs, events = decoded(first, bodies, known)
            if len(seqs) < len(bodies):
                erased.update(set(range(max(first, known + 1), last + 1)).difference(seqs))
            model.fold_all(seqs, events)
            model.seq = last
            for event in events:
                if type(event) is Forget:
                    erased.difference_update(event.erased)
        progress(last, total)
        if last == total:
            break
    model.learn()
    if erased and until is None:
        raise DamagedLog(f"the log is damaged at event {min(erased)}: its content is gone, and no later event says that it was forgotten")
    return model


def decoded(first: int, bodies: list[bytes | None], known: int = 0) -> tuple[Sequence[int], list[Event]]:
    """The events behind `known` that were not erased, with their numbers; decoded together, which is quicker."""
    seqs: Sequence[int] = range(first, first + len(bodies))
    present = [body for body in bodies if body is not None]
    if known >= first or len(present) < len(bodies):
        seqs = [seq for seq, body in zip(seqs, bodies, strict=True) if body is not None and seq > known]
        present = [body for seq, body in enumerate(bodies, start=first) if body is not None and seq > known]
    try:
        events = decode_all(b"[" + b",".join(present) + b"]")
        if len(events) != len(present):
            raise ValueError("rows and events differ in number")
    except (MsgspecError, ValueError) as error:
        raise DamagedLog(f"the log is damaged between events {first} and {first + len(bodies) - 1}: {error}") from error
    return seqs, events


def check_keys(store: Store) -> None:
    """Refuse a log whose keys are not exactly those of its events: then the same rating could count twice, or a new one not at all."""
    kept = store.key_rows()
    for first, bodies in store.read(checked=False):
        for seq, event in zip(*decoded(first, bodies), strict=True):
            if isinstance(event, Rated):
                key = event_key(event.event_id)
            elif isinstance(event, Decided) and event.request_id is not None:
                key = request_key(event.request_id)
            else:
                continue
            found = next(kept, None)
            while found is not None and found[1] < seq and store.body(found[1]) is None:  # of an erased event the key stays
                found = next(kept, None)
            if found is None or found[:2] != (key, seq):
                raise DamagedLog(f"the log is damaged at event {seq}: it cannot be found by its id")
    rest = next((found for found in kept if store.body(found[1]) is not None), None)
    if rest is not None:
        raise DamagedLog(f"the log is damaged at event {rest[1]}: an id points to it that is not its own")
