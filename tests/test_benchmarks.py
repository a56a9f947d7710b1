"""What is compared for speed does the same."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from albatross import Agent
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
from benchmarks.cluster.model import Engine, Exchanged, Model
from benchmarks.cluster.queueing import Compute
from benchmarks.cluster.scale_out import Counted, Run, costs, spent_between
from benchmarks.oracles.logged import estimate_offsets, others_said
from benchmarks.oracles.once import regret_once
from benchmarks.oracles.price_of_trying import exact_price, our_price
from benchmarks.steps import numpy_alb
from benchmarks.steps.literal_alb import LiteralALB
from benchmarks.steps.numpy_alb import NumpyALB

N_STEPS = 300


def numpy_yardstick(policy: ALB, agent: Agent) -> NumpyALB:
    return NumpyALB(policy, agent.state.user_factors, agent.state.item_factors)


def literal_yardstick(policy: ALB, agent: Agent) -> LiteralALB:
    return LiteralALB(policy, agent.state.user_factors, agent.state.item_factors, horizon=N_STEPS)


@pytest.mark.xdist_group("alb")
@pytest.mark.parametrize("rebuild_interval", [4096, 30], ids=["as measured", "summing afresh often"])
@pytest.mark.parametrize("n_recalled", [0, N_STEPS // 2], ids=["from nothing", "with a past"])
@pytest.mark.parametrize("create", [numpy_yardstick, literal_yardstick])
def test_a_yardstick_is_the_policy(
    create: Callable[[ALB, Agent], NumpyALB | LiteralALB], n_recalled: int, rebuild_interval: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both learn the same ratings, half of them of items that neither would have chosen."""
    monkeypatch.setattr(numpy_alb, "REBUILD_INTERVAL", rebuild_interval)
    random = np.random.default_rng(0)
    environment = Gaussian(n_users=20, n_items=30)
    world = environment.world(0)
    means = world.user_factors @ world.item_factors.T
    policy = ALB(ridge=1.0, noise=0.5)  # a small ridge magnifies rounding errors more within these steps
    agent = Agent(policy, environment.n_users, environment.n_items)
    users, items = random.integers(environment.n_users, size=n_recalled), random.integers(environment.n_items, size=n_recalled)
    agent.replay(users, items, means[users, items])
    yardstick = create(policy, agent)
    yardstick.recall(users, items, means[users, items])
    for step in range(n_recalled, N_STEPS):
        user = int(random.integers(environment.n_users))
        choice, chosen = agent.select(user), yardstick.select(user)
        assert yardstick.scores == pytest.approx(agent.slate.scores, rel=1e-8, abs=1e-8), f"scores at step {step}"
        assert yardstick.scores[choice.item] == pytest.approx(yardstick.scores[chosen], rel=1e-8), f"choice at step {step}"
        item = choice.item if step % 2 == 0 else int(random.integers(environment.n_items))
        reward = float(means[user, item] + 0.5 * random.standard_normal())
        agent.update(user, item, reward)
        yardstick.update(user, item, reward)
        assert yardstick.user_factors == pytest.approx(agent.state.user_factors, rel=1e-8, abs=1e-8), f"users at step {step}"
        assert yardstick.item_factors == pytest.approx(agent.state.item_factors, rel=1e-8, abs=1e-8), f"items at step {step}"


def test_whoever_is_told_the_offsets_is_told_the_truth() -> None:
    random = np.random.default_rng(2)
    users, items = np.divmod(np.flatnonzero(random.random(300 * 200) < 0.3), 200)
    user_parts, item_parts = 1.5 * random.standard_normal(300), 0.7 * random.standard_normal(200)
    ratings = 4.0 + user_parts[users] + item_parts[items] + 2.0 * random.standard_normal(users.size)
    offsets, found = estimate_offsets(users, items.astype(np.int32), ratings)
    assert (offsets.items, offsets.users, offsets.residual) == pytest.approx((0.7**2, 1.5**2, 4.0), rel=0.25)
    others = others_said(users, items.astype(np.int32), ratings, offsets, found)
    assert np.corrcoef(others, item_parts[items])[0, 1] > 0.9
    # Not a word of the user's own rating: what is left of it after the others has the noise that others do not know.
    assert abs(np.corrcoef(others - item_parts[items], ratings - 4.0 - user_parts[users] - item_parts[items])[0, 1]) < 0.05


def test_whoever_is_told_what_others_said_is_wrong_only_about_who_differs(tmp_path: Path) -> None:
    file = tmp_path / "films.csv"
    tastes = [(f"user{number}", 5, 1) for number in range(6)] + [("contrarian", 1, 5)]
    file.write_text("user,item,rating\n" + "".join(f"{user},heat,{heat}\n{user},alien,{alien}\n" for user, heat, alien in tastes))
    regret = regret_once(str(file), 14, n_seeds=2)
    assert regret.shape == (2, 14)
    assert regret.sum(axis=1).tolist() == [4.0, 4.0], "one user is shown the worse of two items first"


def test_the_exact_price_of_trying_is_that_of_all_ways_to_go_on() -> None:
    """Two users: the item is tried for the sake of the second. By hand for a uniform belief: ½ + (½ · ⅔ + ½ · c) = 2 c."""
    assert exact_price(1.0, 1.0, 2) == pytest.approx(5.0 / 9.0 - 0.5, abs=1e-6)
    assert exact_price(2.0, 2.0, 1) == pytest.approx(0.0, abs=1e-6)
    assert 0.5 < our_price(1.0, 1.0, 20) / exact_price(1.0, 1.0, 20) < 1.5


def model_of(costs: list[list[float]]) -> Model:
    """Costs in microseconds by kind of process, in the order of the model's fields. What is left out costs nothing."""
    rows = [*costs, *[[0.0] * 5] * (len(Model._fields) - len(costs))]
    return Model(*(1e-6 * np.array(row) for row in rows))


@pytest.mark.parametrize(("shards", "exchanged"), [(1, Exchanged()), (2, Exchanged()), (2, Exchanged(versions=10, payloads=15, looks=20))])
def test_a_model_of_a_cluster_computes_all_that_an_event_costs(shards: int, exchanged: Exchanged) -> None:
    """On one slow processor nothing else matters: neither queues nor the disk."""
    group, rating, divided = [130.0, 210, 6, 160, 14], [1.0, 6, 25, 13, 2], [1.0, 2, 0, 0, 0]
    payload, version, read, look = ([0.0, 0, ours, theirs, 0] for ours, theirs in ((3_000, 4_000), (1_000, 600), (1_500, 700), (200, 100)))
    said = model_of([group, rating, divided, payload, version, read, look]).run(shards, exchanged, flush=0.0, processors=1.0)
    assert said.busy == pytest.approx(1.0, rel=0.01)
    assert said.rate * said.spent.sum() == pytest.approx(1.0, rel=0.02)
    of_events = sum(group) / said.group + sum(rating) + (sum(divided) if shards > 1 else 0)
    of_each_version = shards * sum(version) + exchanged.payloads / max(exchanged.versions, 1) * (sum(payload) + shards * sum(read))
    a_second = exchanged.versions * of_each_version + exchanged.looks * sum(look)
    assert said.spent.sum() * 1e6 == pytest.approx(of_events + a_second / said.rate, rel=0.02)


def test_a_model_of_a_cluster_counts_small_groups() -> None:
    """Four shards have a quarter of each slice, so they commit more often for the same ratings."""
    costs = [[0.0, 0, 500, 500, 0], [0.0, 5, 20, 10, 0]]
    one, four = (model_of(costs).run(shards, Exchanged(), flush=0.0, processors=2.0) for shards in (1, 4))
    assert four.group < 0.8 * one.group
    assert four.spent.sum() > one.spent.sum()


def test_a_model_of_a_cluster_commits_small_parts_together() -> None:
    """As the engine does: up to 256 ratings and one part more. An exchange is committed alone."""
    engine = Engine(lambda _, seconds: iter([Compute(seconds)]))  # type: ignore[arg-type, return-value]
    nothing = np.zeros(5)
    for weight in (250, 250, 250, 0, 500, 500):
        next(engine.ask(nothing, weight))
    assert [[one.weight for one in engine.take()] for _ in range(5)] == [[250, 250], [250], [0], [500], [500]]


def test_processor_time_of_processes_that_come_and_go() -> None:
    """One that has ended must not count as negative: its time so far is not known any more."""
    before = {(0, 10): 1.0, (4, 11): 50.0}
    after = {(0, 10): 1.5, (4, 12): 0.25}
    assert spent_between(before, after).tolist() == [0.5, 0.0, 0.0, 0.0, 0.25]


def test_a_rating_costs_what_is_left_beside_its_slice_and_its_commit() -> None:
    """Slices of 100 and of 500 lines, which shards commit 250 and 500 at a time."""
    slice_cost, commit, rating = np.array([100.0, 200, 0, 0, 50]), np.array([0.0, 0, 700, 800, 0]), np.array([1.0, 5, 25, 13, 1])

    def run(lines: int, committed: int) -> Run:
        spent = 1e-6 * 1_000 * (slice_cost / lines + commit / committed + rating)
        return Run(1_000, 1.0, spent, 1_000 // committed, Counted(*[0.0] * len(Counted._fields)), 0.0)

    group, each = costs([run(100, 250)], [run(500, 500)], 1e-6 * commit)
    assert group * 1e6 == pytest.approx(slice_cost + commit)
    assert each * 1e6 == pytest.approx(rating)
