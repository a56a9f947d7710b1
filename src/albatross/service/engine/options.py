"""How a folder is to be served, and the first event that fixes it."""

import secrets
import time

from msgspec import Struct

from albatross import policies
from albatross.core.errors import InvalidInput, check_whole
from albatross.core.policy import Policy
from albatross.kernels.compiling import source_fingerprint
from albatross.policies.alb import ALB
from albatross.service.api.errors import BadValue
from albatross.service.api.values import check_id
from albatross.service.storage.events import FORMAT, Genesis

QUEUE = 4096
"""Requests that may wait, at most: beyond, a request is refused at once."""

FLOOR = 0.05
"""Share of decisions left to chance: true propensities for a price that could not be measured."""


class Options(Struct, frozen=True):
    """What the log's first event fixes (policy, scale, seed, …) must agree with it, or be None."""

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


def check_options(options: Options) -> None:
    """Refuse what no folder could be served with."""
    check_whole("queue", options.queue, 1)
    check_whole("snapshot_every", options.snapshot_every, 0)
    if options.durability not in ("commit", "relaxed"):
        raise InvalidInput(f"durability is {options.durability!r}; accepted: commit, relaxed")


def policy_of(genesis: Genesis) -> Policy:
    policy = policies.create(genesis.policy, genesis.parameters)
    check_servable(policy)
    return policy


def check_servable(policy: Policy) -> None:
    if policy.asks():
        needs = " and ".join(policy.asks())
        raise InvalidInput(
            f"policy {policy.policy_name()!r} must be told {needs}, by a simulated world; accepted: one that starts from nothing"
        )
    if policy.learns == "nothing":
        raise InvalidInput(f"policy {policy.policy_name()!r} learns nothing; accepted: a policy that does")


def check_agrees(options: Options, genesis: Genesis, where: str) -> None:
    """Refuse options that contradict the first event of a folder."""
    given = {
        "policy": None if options.policy is None else (options.policy.policy_name(), options.policy.parameters()),
        "scale": None if options.scale is None else (float(options.scale[0]), float(options.scale[1])),
        "seed": options.seed,
        "floor": options.floor,
        "closed": options.closed,
    }
    policy = policy_of(genesis)
    fixed = {
        "policy": (policy.policy_name(), policy.parameters()),
        "scale": genesis.scale,
        "seed": genesis.seed,
        "floor": genesis.floor,
        "closed": genesis.closed,
    }
    for name, value in given.items():
        if value is not None and value != fixed[name]:
            hint = " (albatross replay builds a new folder under another policy)" if name == "policy" else ""
            raise InvalidInput(f"{name} is {value}; accepted: that of {where}, {fixed[name]}{hint}")


def new_genesis(options: Options) -> Genesis:
    """The first event of a new folder."""
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
