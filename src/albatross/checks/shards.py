"""Checks of a policy that declares how its state divides over shards. A policy that does not declare it passes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.checks.worlds import beginner, statistics_of
from albatross.core.agent import Agent
from albatross.core.policy import Policy
from albatross.core.sharing.carrying import arrive, leave, rows_of
from albatross.core.sharing.exchange import Exchange, Payload, part
from albatross.core.sharing.gathering import Gathering
from albatross.core.state import flatten, identity
from albatross.core.streams import stream
from albatross.kernels.operations import carry, offers

USERS, SHARDS = 6, 2
"""Users per shard, and shards."""
STEPS = 60
ROUNDING = 1e-7
"""Accepted difference between two orders of summation. Alternating fits amplify rounding from step to step."""
MOST_ROUNDS = 3
"""After so many exchanges there is nothing left to exchange."""

Told = tuple[int, int, float]
"""A user, an item, a reward."""


def _ratings(n_users: int, n_items: int) -> list[Told]:
    random = stream(4, "check")
    users, items = random.integers(n_users, size=STEPS), random.integers(n_items, size=STEPS)
    return [(int(user), int(item), float(random.integers(1, 6))) for user, item in zip(users, items, strict=True)]


def _shards(policy: Policy, shards: int = SHARDS) -> list[Exchange]:
    return [Exchange(beginner(policy, USERS), shard, shards) for shard in range(shards)]


def _through_bytes(payloads: Sequence[Payload]) -> list[Payload]:
    return [Payload.from_bytes(payload.to_bytes()) for payload in payloads]


def divides_all_that_was_learned(policy: Policy) -> None:
    """Every array of the state is declared once; sums have one row per item."""
    if policy.division is None:
        return
    agent = beginner(policy)
    declared = [name for names in policy.division[:4] for name in names]
    names = [name for name, _ in flatten(agent.state)]
    for name in names:
        found = [each for each in declared if name == each or name.startswith(f"{each}.")]
        assert len(found) == 1, f"array {name} stands in {len(found)} places of the division; accepted: one"
    for name in declared:
        assert any(each == name or each.startswith(f"{name}.") for each in names), f"the division has {name}, which the state has not"
    for name in (*policy.division.sums, *policy.division.derived[:1]):
        array = part(agent.state, name)
        assert len(array) == agent.n_items, f"{name} has {len(array)} rows; accepted: one per item, {agent.n_items}"
        assert array.ndim < 3 or array.flags.c_contiguous, f"{name} has more than two axes; accepted then: C order"


def one_shard_is_one_agent(policy: Policy) -> None:
    """On one shard an exchange changes nothing, bit for bit."""
    if policy.division is None:
        return
    plain, shard = beginner(policy, USERS), _shards(policy, 1)[0]
    for told in _ratings(USERS, plain.n_items):
        plain.update(*told)
        shard.agent.update(*told)
        shard.fold(_through_bytes([shard.take()]))
    assert shard.agent.state_id == plain.state_id


def shards_learn_as_one_agent(policy: Policy) -> None:
    """Shards that exchange after each rating predict what one agent predicts, up to rounding."""
    if policy.division is None:
        return
    simple = replace(policy, **dict(policy.division.by_turns))
    one, shards = beginner(simple, SHARDS * USERS), _shards(simple)
    for step, (user, item, reward) in enumerate(_ratings(one.n_users, one.n_items)):
        one.update(user, item, reward)
        shards[user % SHARDS].agent.update(user // SHARDS, item, reward)
        _settle(shards)
        if step % 10 == 9:
            for each in range(one.n_users):
                _agree(one, each, shards[each % SHARDS].agent, each // SHARDS, step)


def _agree(one: Agent, user: int, other: Agent, same_user: int, step: int) -> None:
    for agent, number in ((one, user), (other, same_user)):
        agent.exploring = stream(5, "check")  # scores may be random
        agent.recommend(number, 1)
    for name in ("means", "scores"):
        expected, found = getattr(one.slate, name), getattr(other.slate, name)
        scale = 1.0 + np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        assert np.allclose(found, expected, rtol=ROUNDING, atol=ROUNDING * scale), f"{name} of user {user} differ after {step + 1} ratings"


def a_shard_replays_alone(policy: Policy) -> None:
    """A shard replayed from its own ratings and the versions, in order, is the same bit for bit. `take` changes nothing."""
    if policy.division is None:
        return
    shards = _shards(policy)
    log: list[list[Told | list[Payload]]] = [[] for _ in shards]
    version: list[Payload] = []
    for step, (user, item, reward) in enumerate(_ratings(SHARDS * USERS, shards[0].agent.n_items)):
        number, told = user % SHARDS, (user // SHARDS, item, reward)
        shards[number].agent.update(*told)
        log[number].append(told)
        if step % 7 == 3:
            before = [identity(shard.memory) + shard.agent.state_id for shard in shards]
            version = _through_bytes([shard.take() for shard in shards])
            assert [shard.take().to_bytes() for shard in shards] == [payload.to_bytes() for payload in version], "taken twice, it differs"
            assert [identity(shard.memory) + shard.agent.state_id for shard in shards] == before, "taking changed something"
        if step % 7 == 6:  # some ratings after it was taken
            for shard, events in zip(shards, log, strict=True):
                shard.fold(version)
                events.append(version)
    for shard, events in zip(_shards(policy), log, strict=True):
        for event in events:
            if isinstance(event, list):
                shard.fold(event)
            else:
                shard.agent.update(*event)
        lived = shards[shard.shard]
        assert shard.agent.state_id == lived.agent.state_id, f"shard {shard.shard} was replayed into another state"
        assert identity(shard.memory) == identity(lived.memory), f"shard {shard.shard} was replayed into another memory"


def payloads_add_up(policy: Policy) -> None:
    """Many payloads of a shard, put together as one, say what they said one after the other, up to rounding."""
    if policy.division is None:
        return
    shards, payloads = _shards(policy), []
    for step, (user, item, reward) in enumerate(_ratings(SHARDS * USERS, shards[0].agent.n_items)):
        shards[user % SHARDS].agent.update(user // SHARDS, item, reward)
        if step % 7 == 6:
            version = [shard.take() for shard in shards]
            for shard in shards:
                shard.fold(version)
            payloads.append(version[0])
    one, half = _together(policy, payloads), len(payloads) // 2
    other = _together(policy, _through_bytes([_together(policy, payloads[:half]), _together(policy, payloads[half:])]))
    for name, found, expected in (("figures", other.figures, one.figures), *zip(policy.division.sums, other.sums, one.sums, strict=True)):
        assert np.allclose(found, expected, rtol=ROUNDING, atol=ROUNDING), f"{name} of payloads put together depend on how that was done"


def a_user_moves_to_another_shard(policy: Policy) -> None:
    """After a move and an exchange, all sums are what they were, and the other shard has the user's ratings."""
    if policy.division is None or not offers(beginner(policy).state, carry):
        return
    shards, mover, newcomer = _shards(policy), 1, USERS - 1
    for user, item, reward in _ratings(SHARDS * (USERS - 1), shards[0].agent.n_items):
        shards[user % SHARDS].agent.update(user // SHARDS, item, reward)
    _settle(shards)
    before, rated = _sums(policy, shards[1]), _pairs_of(policy, shards[0].agent, mover)
    content = rows_of(shards[0].agent, mover)
    leave(shards[0].agent, mover)
    arrive(shards[1].agent, newcomer, content)
    _settle(shards)
    for shard in shards:
        for name, found, expected in zip(policy.division.sums, _sums(policy, shard), before, strict=True):
            scale = 1.0 + np.abs(expected).max(initial=0.0)
            assert np.allclose(found, expected, rtol=ROUNDING, atol=ROUNDING * scale), f"{name} have changed because a user has moved"
    assert _pairs_of(policy, shards[1].agent, newcomer) == rated, "the other shard has other ratings of a user who has moved"
    assert not any(_pairs_of(policy, shards[0].agent, mover)), "a shard has ratings of a user who has moved away"
    for shard, user in ((shards[0], mover), (shards[1], newcomer)):
        shard.agent.update(user, shard.agent.select(user).item, 3.0)
        assert np.isfinite(shard.agent.select(user).mean), "after a move, a user is expected to give no number"


def _settle(shards: Sequence[Exchange]) -> None:
    for _ in range(MOST_ROUNDS):
        version = [shard.take() for shard in shards]
        for shard in shards:
            shard.fold(version)


def _sums(policy: Policy, shard: Exchange) -> list[NDArray[Any]]:
    return [part(shard.agent.state, name).copy() for name in policy.division.sums] if policy.division else []


def _pairs_of(policy: Policy, agent: Agent, user: int) -> list[list[float]]:
    """The items, numbers and totals of a user's ratings, if the policy stores them."""
    found = dict(statistics_of(policy, agent.state))
    if "pairs.users" not in found:
        return []
    own = found["pairs.users"] == user
    return [found[f"pairs.{name}"][own].tolist() for name in ("items", "plays", "totals")]


def _together(policy: Policy, payloads: Sequence[Payload]) -> Payload:
    gathering = Gathering(beginner(policy, USERS))
    for payload in payloads:
        gathering.add(payload)
    return gathering.payload()
