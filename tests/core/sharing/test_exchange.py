"""Shards tell each other what their users have added, and nothing is lost or counted twice."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from albatross import Agent
from albatross.core.errors import InvalidInput
from albatross.core.policy import Policy
from albatross.core.sharing.exchange import Exchange, Payload, Version, check_shards, part
from albatross.core.sharing.steps import Memory
from albatross.core.state import flatten, identity, restored
from albatross.kernels.pairs import NOTHING
from albatross.policies import names
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.mean_field import MeanField
from albatross.policies.pts import PTS

from zoo import POLICIES

pytestmark = pytest.mark.xdist_group("alb")

DIVIDED = {"alb", "alb-rs", "item-mean", "item-ucb", "mean-field", "oful", "popularity-memory", "random", "user-ucb"}
N_USERS, N_ITEMS = 6, 8


def shards_of(policy: Policy, count: int = 2) -> list[Exchange]:
    return [Exchange(Agent(policy, N_USERS, N_ITEMS), shard, count) for shard in range(count)]


def exchange_all(shards: Sequence[Exchange]) -> list[Payload]:
    version = [shard.take() for shard in shards]
    for shard in shards:
        shard.fold(version)
    return version


def rate(shard: Exchange, count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    users, items = random.integers(N_USERS, size=count), random.integers(N_ITEMS, size=count)
    shard.agent.replay(users, items, random.integers(1, 6, size=count).astype(float))


@pytest.mark.parametrize("name", names())
def test_policies_that_do_not_divide_run_on_one_shard(name: str) -> None:
    check_shards(POLICIES[name], 1)
    if name in DIVIDED:
        check_shards(POLICIES[name], 1000)
    else:
        with pytest.raises(InvalidInput, match=rf"policy '{name}' runs on one shard, .* given: 4 shards"):
            check_shards(POLICIES[name], 4)


@pytest.mark.parametrize("policy", [ItemMean(), ALB(rank=2)], ids=lambda policy: policy.policy_name())
def test_a_payload_waits_for_a_version_that_has_room(policy: Policy) -> None:
    """Each shard has at most one payload on its way, and a version takes those that it finds: in the end all know the same sums."""
    random = np.random.default_rng(0)
    shards = shards_of(policy, 3)
    waiting: dict[int, Payload] = {}
    for step in range(60):
        rate(shards[random.integers(3)], 2, seed=step)
        for shard in random.permutation(3)[: random.integers(4)]:
            waiting.setdefault(int(shard), shards[shard].take())
        taken = {shard for shard in waiting if random.random() < 0.6}
        version = [waiting.pop(shard) if shard in taken else None for shard in range(3)]
        for one in shards:
            one.fold(version)
    for _ in range(2):  # what was on its way, and what came behind it
        version = [waiting.pop(shard, None) or shards[shard].take() for shard in range(3)]
        for one in shards:
            one.fold(version)
    assert policy.division is not None
    for name in policy.division.sums:
        first, *others = (np.asarray(part(one.agent.state, name), float) for one in shards)
        assert np.abs(first).sum() > 0
        for other in others:
            np.testing.assert_allclose(other, first, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("policy", [ItemMean(), ALB(rank=2), MeanField(rank=2)], ids=lambda policy: policy.policy_name())
def test_a_shard_that_has_not_learned_takes_the_same_with_less_work(policy: Policy) -> None:
    random = np.random.default_rng(0)
    shards = shards_of(policy, 3)
    rebuilt = 0
    for step in range(80):
        busy = int(random.integers(3))
        rate(shards[busy], 1, seed=step)
        version = Version.of([shard.take(learned=shard.shard == busy) for shard in shards])
        for shard in shards:
            shard.apply(version, learned=False)
            payload = shard.take(learned=False)
            rebuilt += payload.items.size > 0
            assert payload.to_bytes() == shard.take().to_bytes()
    assert rebuilt > 0 or not isinstance(policy, MeanField), "no refit has changed sums"


def test_what_a_version_lacks_is_told_with_the_next_one() -> None:
    """Also by a shard that has not learned since: its own payload was late."""
    shards = shards_of(ItemMean(), 2)
    rate(shards[0], 3, seed=0)
    late, other = (shard.take() for shard in shards)
    assert late.items.size > 0
    shards[0].apply(Version.of([None, other]), learned=False)
    assert shards[0].take(learned=False).to_bytes() == late.to_bytes()


def test_an_exchange_refuses_what_cannot_be() -> None:
    with pytest.raises(InvalidInput, match="policy 'pts' runs on one shard"):
        Exchange(Agent(PTS(n_particles=2), 2, 2), 0, 2)
    for shard in (-1, 2, True):
        with pytest.raises(InvalidInput, match="accepted: a whole number from 0 to 1"):
            Exchange(Agent(ItemMean(), 2, 2), shard, 2)


def own_sums(agent: Agent) -> tuple[Any, Any]:
    """Σ A Aᵀ, packed, and Σ y A over the agent's own ratings, item by item."""
    state = agent.state
    grams, moments = np.zeros_like(state.item_grams), np.zeros_like(state.item_moments)
    rows, columns = np.tril_indices(state.user_factors.shape[1])
    for user, vector in enumerate(state.user_factors):
        entry = state.pairs.first[user]
        while entry != NOTHING:
            item = state.pairs.items[entry]
            grams[item] += state.pairs.plays[entry] * vector[rows] * vector[columns]
            moments[item] += state.pairs.totals[entry] * vector
            entry = state.pairs.following[entry]
    return grams, moments


def test_drift_control_rebuilds_the_own_part_alone() -> None:
    shards = shards_of(ALB(rank=2, ridge=0.5))
    for round_ in range(3):
        for shard in shards:
            rate(shard, 2500, seed=2 * round_ + shard.shard)
        exchange_all(shards)
    grams, moments = zip(*(own_sums(shard.agent) for shard in shards), strict=True)
    for shard in shards:
        assert shard.memory.others.updates[1] > 4096, "nothing was rebuilt"
        assert shard.agent.state.item_grams == pytest.approx(sum(grams), rel=1e-9)
        assert shard.agent.state.item_moments == pytest.approx(sum(moments), rel=1e-9)
        assert shard.memory.others.item_grams == pytest.approx(grams[1 - shard.shard], rel=1e-9)


def test_between_exchanges_nothing_of_the_others_is_forgotten() -> None:
    shards = shards_of(ALB(rank=2, ridge=0.5))
    rate(shards[1], 50, seed=1)
    exchange_all(shards)
    rate(shards[0], 9000, seed=0)
    expected = own_sums(shards[0].agent)[0] + own_sums(shards[1].agent)[0]
    assert shards[0].agent.state.item_grams == pytest.approx(expected, rel=1e-6)


def test_a_mean_field_keeps_what_others_added_when_it_sums_afresh() -> None:
    shards = shards_of(MeanField(rank=2))
    for round_ in range(6):
        for shard in shards:
            rate(shard, 40, seed=2 * round_ + shard.shard)
        exchange_all(shards)
    exchange_all(shards)  # of the changes by the rebuild
    first, second = (shard.agent.state for shard in shards)
    assert shards[0].memory.others.counts[0].rebuilt > 0, "nothing was rebuilt"
    assert (first.counts[0].ratings, first.counts[0].users) == (480, 2 * N_USERS)
    for name in ("item_sums", "item_rights", "user_squares", "user_spreads"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), rel=1e-6, abs=1e-6), name
    for name in ("average", "squares", "within", "largest"):
        assert getattr(first.figures[0], name) == pytest.approx(getattr(second.figures[0], name)), name


def test_a_lost_payload_does_no_harm_and_a_late_rating_is_part_of_the_next() -> None:
    shards = shards_of(ItemMean())
    shards[0].agent.update(0, 1, 5.0)
    shards[0].take()  # lost
    version = [shard.take() for shard in shards]
    shards[0].agent.update(1, 2, 3.0)
    for shard in shards:
        shard.fold(version)
    assert shards[1].agent.state.tally.plays.tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    payload = exchange_all(shards)[0]
    assert (payload.items.tolist(), [added.tolist() for added in payload.sums]) == ([2], [[1], [3.0]])
    for shard in shards:
        assert shard.agent.state.tally.plays.tolist() == [0, 1, 1, 0, 0, 0, 0, 0]
        assert shard.agent.state.tally.overall.tolist() == [4.0, 2.0]
    assert [payload.items.size for payload in exchange_all(shards)] == [0, 0]


def test_others_hear_of_an_item_that_was_rated_again_before_the_version_came() -> None:
    shards = shards_of(ALB(rank=2))
    for shard in shards:
        shard.agent.update(0, 3, 4.0)
    version = [shard.take() for shard in shards]
    shards[0].agent.update(1, 3, 1.0)
    for shard in shards:
        shard.fold(version)
    exchange_all(shards)
    first, second = (shard.agent.state.item_factors for shard in shards)
    assert second == pytest.approx(first, rel=1e-9)


def test_items_that_come_later_are_exchanged_too() -> None:
    shards = shards_of(ALB(rank=2))
    shards[0].agent.update(0, 3, 4.0)
    exchange_all(shards)
    shards[0].agent.grow(N_USERS + 1, N_ITEMS + 2)
    shards[0].agent.update(N_USERS, N_ITEMS, 5.0)
    version = [shard.take() for shard in shards]
    assert version[0].items.tolist() == [N_ITEMS]
    with pytest.raises(InvalidInput, match="a payload for items 8 to 8; accepted: 0 to 7, as the agent has"):
        shards[1].fold(version)
    shards[1].agent.grow(N_USERS, N_ITEMS + 2)
    for shard in shards:
        shard.fold(version)
    first, second = (shard.agent.state for shard in shards)
    assert second.item_factors == pytest.approx(first.item_factors, rel=1e-12)
    assert second.item_grams == pytest.approx(first.item_grams, rel=1e-12)


@pytest.mark.parametrize("policy", [ALB(rank=2), MeanField(rank=2)], ids=["alb", "mean-field"])
def test_a_shard_is_saved_and_goes_on(policy: Policy) -> None:
    shards = shards_of(policy)
    for shard in shards:
        rate(shard, 30, seed=shard.shard)
    exchange_all(shards)
    rate(shards[0], 5, seed=7)
    twin = shards_of(policy)[0]
    twin.agent.state = restored(twin.agent.state, dict(flatten(shards[0].agent.state)))
    twin.agent.learning.bit_generator.state = shards[0].agent.learning.bit_generator.state
    twin.memory = restored(twin.memory, dict(flatten(shards[0].memory)))
    version = [twin.take(), shards[1].take()]
    assert version[0].to_bytes() == shards[0].take().to_bytes()
    for shard in (shards[0], twin):
        shard.fold(version)
        rate(shard, 5, seed=8)
    assert twin.agent.state_id == shards[0].agent.state_id
    assert identity(twin.memory) == identity(shards[0].memory)
    assert isinstance(twin.memory, Memory)


def test_what_is_no_payload_is_refused() -> None:
    shards = shards_of(ItemMean())
    shards[0].agent.update(0, 1, 5.0)
    content = shards[0].take().to_bytes()
    for damaged in (b"", b"nothing", content[:-1], content[:40]):
        with pytest.raises(InvalidInput, match="are no payload of an exchange"):
            Payload.from_bytes(damaged)
    whole, empty = Payload.from_bytes(content), shards[1].take()
    before = identity(shards[1].memory) + shards[1].agent.state_id
    for version, complaint in (
        ([whole], "a version of 1 payloads; accepted: 2"),
        ([whole._replace(sums=whole.sums[:1]), empty], "a payload with sums of"),
        ([whole._replace(digests=whole.digests[:0]), empty], "all of one length"),
        ([whole._replace(figures=np.zeros(9)), empty], "reports of different lengths"),
    ):
        with pytest.raises(InvalidInput, match=complaint):
            shards[1].fold(version)
    assert identity(shards[1].memory) + shards[1].agent.state_id == before
