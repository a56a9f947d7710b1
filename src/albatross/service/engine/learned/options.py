"""Options of a folder, and its first event, which fixes some of them."""

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, get_args

from msgspec import Struct

from albatross import policies
from albatross.core.errors import InvalidInput, check_whole, unknown
from albatross.core.foreign.outside import digest_of, known_by, reference_to
from albatross.core.policy import Policy
from albatross.kernels.building.sources import is_ours
from albatross.kernels.compiling import source_fingerprint
from albatross.service.api.errors import BadValue
from albatross.service.api.rules import By
from albatross.service.api.values import check_id
from albatross.service.engine.learned.reacting import check_rewards
from albatross.service.storage.events import FORMAT, Adopt, Genesis, Outside

QUEUE = 4096
"""Limit of waiting requests: further ones are refused at once."""

FLOOR = 0.05
"""Share of places filled at random, for valid propensities. Its cost in regret was too small to measure."""


class Options(Struct, frozen=True):
    """An option that the first event of the log fixes (policy, scale, seed, …) must agree with it, or be None."""

    policy: Policy | None = None
    """None: that of the folder; for a new folder, mean-field."""
    accept_changed_policy: bool = False
    """Whether a policy from outside may have changed since the folder was made: then the model is rebuilt from the whole log."""
    scale: tuple[float, float] | None = None
    """Lowest and highest rating. Needed for a new folder; with events, theirs if it is not given."""
    seed: int | None = None
    """None: that of the folder; for a new folder, 0."""
    floor: float | None = None
    """Share of places filled at random. None: that of the folder; for a new folder, 0.05."""
    closed: bool | None = None
    """Whether items are added only by upsert. None: that of the folder; for a new folder, false."""
    events: dict[str, float] | None = None
    """Named events and their rewards. None: those of the folder; for a new folder, none. Those that a folder began with are accepted, too,
    but the rewards that were set since then count."""
    silence: tuple[float, float] | None = None
    """After so many seconds without an answer, an item of a decision counts as answered with this reward. None: never."""
    retention: float | None = None
    """After so many seconds, a decision without an answer is dropped from the log. None: never."""
    strangers: By = "policy"
    """By what items are ranked for users without ratings."""
    items: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """Known from the beginning, in this order. Used only for a new folder."""
    durability: str = "commit"
    """commit: on disk before it is acknowledged; relaxed: up to a second may be lost if the power fails."""
    queue: int = QUEUE
    snapshot_every: int = 100_000
    """Events between two snapshots; 0: only on request and at the end."""
    sources: dict[str, str] = {}
    """The configuration file of each setting that was taken from one: errors name it."""


@contextmanager
def named(options: Options, key: str) -> Iterator[None]:
    """An error in a setting that was taken from a file names the file."""
    try:
        yield
    except InvalidInput as error:
        if key not in options.sources:
            raise
        raise InvalidInput(f"{options.sources[key]}: {error}") from error


def check_options(options: Options) -> None:
    """Refuse options that are invalid for any folder."""
    check_whole("queue", options.queue, 1)
    check_whole("snapshot_every", options.snapshot_every, 0)
    if options.retention is not None and not 0 < options.retention < 1e11:
        raise InvalidInput(f"retention is {options.retention:g} seconds; accepted: more than 0")
    if options.strangers not in get_args(By):
        raise InvalidInput(f"strangers is {options.strangers!r}; accepted: {', '.join(get_args(By))}")
    if options.durability not in ("commit", "relaxed"):
        raise InvalidInput(f"durability is {options.durability!r}; accepted: commit, relaxed")


def policy_of(genesis: Genesis) -> Policy:
    """The policy of a folder. A policy from outside must have the recorded sources."""
    if genesis.outside is None:
        policy = policies.create(genesis.policy, genesis.parameters)
    else:
        present = outside_of(genesis)
        if present.digest != genesis.outside.digest:
            raise changed(genesis, present)
        policy = _outside_policy(genesis, present)
    check_servable(policy)
    return policy


def outside_of(genesis: Genesis, given: Policy | None = None) -> Outside:
    """The current sources of a folder's policy from outside: of the given policy, of a loaded one, or in its file."""
    known = genesis.outside
    assert known is not None, "a policy of albatross is not from outside"
    if given is not None:
        return source_of(given) or known
    found = known_by(known.digest, known.reference.rpartition(":")[2])
    if found is not None:
        return known
    try:
        found = policies.find(known.reference)
    except InvalidInput as error:
        raise InvalidInput(
            f"policy {genesis.policy!r}, which the folder was learned with, cannot be loaded: {error}; "
            "if it was moved, say where it is now: --policy file.py:Class"
        ) from error
    return Outside(reference_to(found), digest_of(found) or "")


def changed(genesis: Genesis, present: Outside) -> InvalidInput:
    """The error for sources other than those the folder was learned with."""
    before = "" if genesis.outside is None else genesis.outside.digest
    return InvalidInput(
        f"the source of policy {genesis.policy!r} has changed: the folder was learned with digest {before}, "
        f"and {present.reference} now has {present.digest}; accepted: the old source, or --accept-changed-policy "
        "(accept_changed_policy=True in Python), which rebuilds the model from the whole log"
    )


def _outside_policy(genesis: Genesis, present: Outside) -> Policy:
    found: Any = known_by(present.digest, present.reference.rpartition(":")[2])
    for parameter in genesis.parameters:
        if parameter not in found.__dataclass_fields__:
            raise unknown(f"parameter of {genesis.policy}", parameter, found.__dataclass_fields__)
    policy: Policy = found(**genesis.parameters)
    return policy


def source_of(policy: Policy) -> Outside | None:
    """The origin of a policy; None for a policy of albatross."""
    if is_ours(type(policy)):
        return None
    return Outside(reference_to(type(policy)), digest_of(type(policy)) or "")


def name_in_log(policy: Policy) -> str:
    """The name of a policy in the log: a file name without its folders, which are private."""
    return policy.policy_name().replace("\\", "/").rpartition("/")[2]


def adoption(options: Options, genesis: Genesis, number: int) -> Adopt | None:
    """The event that accepts changed sources of a folder's policy; None if they have not changed.

    Refuses them unless the options accept them.
    """
    if genesis.outside is None or (options.policy is not None and name_in_log(options.policy) != genesis.policy):
        return None
    present = outside_of(genesis, options.policy)
    if present.digest == genesis.outside.digest:
        return None
    if not options.accept_changed_policy:
        raise changed(genesis, present)
    policy = _outside_policy(genesis, present)
    return Adopt(time.time(), number, present, policy.parameters(), source_fingerprint(type(policy)))


def check_servable(policy: Policy) -> None:
    if policy.asks():
        needs = " and ".join(policy.asks())
        raise InvalidInput(
            f"policy {policy.policy_name()!r} must be told {needs}, by a simulated world; accepted: one that starts from nothing"
        )
    if policy.learns == "nothing":
        raise InvalidInput(f"policy {policy.policy_name()!r} learns nothing; accepted: a policy that does")


def check_agrees(options: Options, genesis: Genesis, where: str, rewards: Mapping[str, float]) -> None:
    """Refuse options that contradict the first event of a folder. `rewards`: the current ones, which count."""
    given = {
        "policy": None if options.policy is None else (name_in_log(options.policy), options.policy.parameters()),
        "scale": None if options.scale is None else (float(options.scale[0]), float(options.scale[1])),
        "seed": options.seed,
        "floor": options.floor,
        "closed_catalogue": options.closed,
    }
    policy = policy_of(genesis)
    fixed = {
        "policy": (genesis.policy, policy.parameters()),
        "scale": genesis.scale,
        "seed": genesis.seed,
        "floor": genesis.floor,
        "closed_catalogue": genesis.closed,
    }
    for name, value in given.items():
        if value is not None and value != fixed[name]:
            hint = " (albatross replay builds a new folder under another policy)" if name == "policy" else ""
            with named(options, name):
                raise InvalidInput(f"{name} is {value}; accepted: that of {where}, {fixed[name]}{hint}")
    # A service whose rewards were changed over HTTP starts again with the flags it was first started with.
    if options.events is not None and {name: float(reward) for name, reward in options.events.items()} not in (rewards, genesis.events):
        first = "" if rewards == genesis.events else f", or those that it began with, {_listed(genesis.events)}"
        with named(options, "events"):
            raise InvalidInput(
                f"events is {_listed(options.events)}; accepted: those of {where}, {_listed(rewards)}{first} "
                "(POST /v1/rewards, or set_rewards, changes them)"
            )


def _listed(rewards: Mapping[str, float]) -> str:
    return ",".join(f"{name}={reward:g}" for name, reward in rewards.items()) or "none"


def new_genesis(options: Options) -> Genesis:
    """The first event of a new folder."""
    rewards = options.events or {}
    if options.scale is None and rewards and len(set(rewards.values())) < 2:
        raise InvalidInput(
            f"all events have the same reward, {_listed(rewards)}, so they do not give the scale; accepted for a new folder: "
            "another event with another reward, such as impression=0, or the scale too (--scale 0..1, or scale=(0, 1) in Python)"
        )
    if options.scale is None and not rewards:
        raise InvalidInput("scale is missing; accepted for a new folder: the lowest and the highest rating, such as 1 and 5")
    low, high = map(float, (min(rewards.values()), max(rewards.values())) if options.scale is None else options.scale)
    if not -1e9 <= low < high <= 1e9:
        raise InvalidInput(f"scale is {low:g} to {high:g}; accepted: two different numbers, the lowest rating first, at most 1e9 in size")
    if rewards:
        with named(options, "events"):
            check_rewards(rewards, (low, high))
    floor = FLOOR if options.floor is None else float(options.floor)
    if not 0.0 <= floor <= 1.0:
        raise InvalidInput(f"floor is {floor:g}; accepted: a number from 0 to 1")
    seed = 0 if options.seed is None else options.seed
    check_whole("seed", seed, 0)
    policy = policies.create(policies.DEFAULT) if options.policy is None else options.policy
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
        policy=name_in_log(policy),
        parameters=policy.parameters(),
        scale=(low, high),
        seed=seed,
        floor=floor,
        closed=bool(options.closed),
        kernel=source_fingerprint(type(policy)),
        users=list(options.users),
        items=list(options.items),
        outside=source_of(policy),
        events={name: float(reward) for name, reward in rewards.items()},
    )
