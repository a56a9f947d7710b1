"""Events with names: what they are worth, and that a later one takes the place of an earlier one, in the log and in the model."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albatross import Recommender
from albatross.checks.worlds import statistics_of
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.policies.pts import PTS
from albatross.service.api.errors import AlreadyRated, BadValue, EventReused, UnknownDecision
from albatross.service.api.requests import Feedback, FeedbackBatch, ListEvents, Recommend, ViewDecision, ViewUser
from albatross.service.engine.engine import Engine
from albatross.service.engine.learned.options import Options
from albatross.service.engine.learned.series import RATINGS, REWARD, SQUARES
from albatross.service.engine.recovering.verifying import redecide
from albatross.service.storage import snapshots
from albatross.service.storage.reading import read_events
from albatross.service.storage.sqlite.log_reader import LogReader
from albatross.service.storage.store import Found

import zoo

EVENTS = {"impression": 0.0, "click": 1.0, "cart": 3.0, "purchase": 5.0}
REPLACING = ("mean-field", "ids", "alb", "alb-rs", "item-mean", "item-ucb", "popularity-memory", "user-ucb")


def shop(folder: Path, **options: Any) -> Recommender:
    return Recommender(folder, events=EVENTS, policy=options.pop("policy", ALB(rank=2)), **options)


def engine_of(folder: Path, name: str = "alb") -> Engine:
    engine = Engine(folder, Options(policy=zoo.POLICIES[name], events=EVENTS, floor=0.2))
    engine.wait_ready()
    return engine


def test_a_purchase_takes_the_place_of_the_click(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        assert here.version().events == EVENTS
        assert here.version().scale == (0.0, 5.0)
        decision = here.recommend("ann", candidates=["tea", "mate"])
        clicked = here.report(decision, "click")
        bought = here.report(decision, "purchase")
        assert (bought.applied, bought.duplicate, bought.seq) == (True, False, clicked.seq + 1)
        assert here.version().ratings == 1
        view = here.engine.ask(ViewDecision(decision.decision_id)).items[0]
        assert (view.rating, view.rated_seq, view.event) == (5.0, bought.seq, "purchase")
        assert here.series().reward == [5.0]
        rows = here.engine.ask(ListEvents(2)).events
        assert [(row.kind, row.event, row.rating, row.replaces) for row in rows] == [
            ("feedback", "purchase", 5.0, clicked.seq),
            ("feedback", "click", 1.0, None),
        ]


def test_a_reward_replaced_at_once_leaves_the_model_as_if_only_it_had_come(tmp_path: Path) -> None:
    states = []
    for name, told in (("both", ["click", "purchase"]), ("last", ["purchase"])):
        with shop(tmp_path / name) as here:
            for user in ("ann", "bob", "ann"):
                decision = here.recommend(user, candidates=["tea"])
                for event in told:
                    here.report(decision, event)
            states.append(here.engine._model.agent.state)
    for name, found, wanted in zip(states[0]._fields, *states, strict=True):
        if isinstance(found, np.ndarray):
            assert np.allclose(found, wanted, rtol=1e-9, atol=1e-9), name


@pytest.mark.parametrize("name", REPLACING)
def test_what_is_kept_is_that_of_a_life_in_which_only_the_last_came(name: str, tmp_path: Path) -> None:
    """Rewards are replaced late, when much was learned in between. Then the log gives the same model, bit for bit."""
    kept = []
    for life in ("all", "last"):
        with engine_of(tmp_path / life, name) as engine:
            random = np.random.default_rng(3)
            decisions, last = [], []
            for step in range(40):
                user, item = f"u{random.integers(6)}", f"i{random.integers(8)}"
                decision = engine.ask(Recommend(user, candidates=[item])).decision_id
                first, then = (str(event) for event in random.choice(list(EVENTS), 2))
                replaced = step % 3 > 0
                engine.ask(Feedback(f"{step} first", None, decision, event=then if replaced and life == "last" else first))
                decisions.append(decision)
                last.append(then if replaced else None)
            for step in random.permutation(40).tolist():
                if last[step] is not None and life == "all":
                    engine.ask(Feedback(f"{step} then", None, decisions[step], event=last[step]))
            model = engine._model
            assert model.ratings == 40
            rewards = model.series.sums[:, [RATINGS, REWARD, SQUARES]]  # the rest compares them with what was decided in between
            statistics = [*statistics_of(model.policy, model.agent.state), ("item sums", model.ledger.item_sums), ("series", rewards)]
            kept.append((statistics, model.state_id))
    for (what, found), (_, wanted) in zip(kept[0][0], kept[1][0], strict=True):
        assert np.allclose(found, wanted, rtol=1e-9, atol=1e-9), what
    for _ in range(2):  # from the snapshot, then from the log alone
        with engine_of(tmp_path / "all", name) as engine:
            assert not engine.complaints
            assert engine._model.state_id == kept[0][1]
            assert redecide(engine._store, engine.genesis) == (40, [], 0)
        snapshots.remove_all(tmp_path / "all")
    assert main(["verify", str(tmp_path / "all"), "--decisions"]) == 0


def test_events_of_one_group_replace_each_other(tmp_path: Path) -> None:
    with engine_of(tmp_path / "shop") as engine:
        decision = engine.ask(Recommend("ann", candidates=["tea", "mate"], n=2)).decision_id
        events = [("tea", "click"), ("new", "cart"), ("tea", "cart"), ("mate", "click"), ("tea", "purchase"), ("tea", "purchase")]
        batch = [
            Feedback(f"e{number}", None, None if item == "new" else decision, "ann", item, event)
            for number, (item, event) in enumerate(events)
        ]
        assert all(getattr(answer, "applied", False) for answer in engine.ask(FeedbackBatch(batch)).answers)
        found = engine.ask(ViewDecision(decision)).items
        assert {item.item: item.rating for item in found} == {"tea": 5.0, "mate": 1.0}
        assert engine._model.ratings == 3
        state = engine._model.state_id
    snapshots.remove_all(tmp_path / "shop")
    with engine_of(tmp_path / "shop") as engine:
        assert engine._model.state_id == state
    assert main(["verify", str(tmp_path / "shop")]) == 0


def test_what_is_no_event_is_refused_with_what_would_be(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        decision = here.recommend("ann", candidates=["tea"])
        for wrong, said in (
            (Feedback("1", None, decision.decision_id, event="klick"), "accepted: impression, click, cart, purchase"),
            (Feedback("2", 3.0, decision.decision_id, event="click"), "one of them"),
            (Feedback("3", None, decision.decision_id), "a rating, or an event"),
            (Feedback("4", None, event="click"), "a decision_id, or a user and an item"),
            (Feedback("5", None, decision.decision_id, event=""), "1 to 256"),
        ):
            with pytest.raises(BadValue, match=said):
                here.ask(wrong)
        here.report(decision, "click")
        with pytest.raises(AlreadyRated):
            here.rate(decision, 3.0)
        with pytest.raises(UnknownDecision):
            here.report("1-nothing", "click")
        assert here.version().ratings == 1
    with Recommender(tmp_path / "stars", scale=(1, 5)) as stars:
        rated = stars.recommend("ann", candidates=["tea"])
        with pytest.raises(BadValue, match="no events are mapped"):
            stars.report(rated, "click")


def test_an_event_takes_the_place_of_a_rating(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        decision = here.recommend("ann", candidates=["tea"])
        here.rate(decision, 2.5)
        here.report(decision, "impression")
        assert here.series().reward == [0.0]
        here.report_item("ann", "tea", "cart")  # of no decision: counted by itself
        assert here.version().ratings == 2
        history = here.ask(ViewUser("ann", history=5)).history
        assert [(entry.event, entry.rating) for entry in history] == [("cart", 3.0), ("impression", 0.0)]


def test_the_same_delivery_counts_once_whatever_its_event_is_worth_by_now(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        decision = here.recommend("ann", candidates=["tea"])
        here.report(decision, "click", event_id="e")
        assert here.set_rewards({"click": 2, "purchase": 5}).events == {"click": 2.0, "purchase": 5.0}
        again = here.report(decision, "click", event_id="e")
        assert (again.duplicate, again.applied) == (True, True)
        with pytest.raises(EventReused):
            here.report(decision, "purchase", event_id="e")
        assert here.series().reward == [1.0]  # what came before stays as it was
        here.set_rewards({"purchase": 5})
        assert here.report(decision, "click", event_id="e").duplicate
        with pytest.raises(BadValue, match="accepted: purchase"):
            here.report(decision, "click")


def test_rewards_change_by_an_event_of_the_log(tmp_path: Path) -> None:
    changed = {"click": 2.0, "refund": 0.0}
    with shop(tmp_path / "shop") as here:
        first = here.set_rewards(changed)
        assert here.set_rewards(changed).seq == first.seq  # nothing to write
        with pytest.raises(BadValue, match=r"the reward of 'gift'.*0 to 5"):
            here.set_rewards({"gift": 6})
        with pytest.raises(BadValue, match="1 to 100"):
            here.set_rewards({})
    for _ in range(2):
        with Recommender(tmp_path / "shop", events=changed) as here:
            assert here.version().events == changed
        snapshots.remove_all(tmp_path / "shop")
    with Recommender(tmp_path / "shop", events=EVENTS) as here:  # as its start command still has it
        assert here.version().events == changed
    with pytest.raises(InvalidInput, match=r"click=2,refund=0, or those that it began with, impression=0,click=1"):
        Recommender(tmp_path / "shop", events={"click": 3.0})
    assert main(["verify", str(tmp_path / "shop")]) == 0


def test_a_policy_that_cannot_take_a_rating_back_refuses_events(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'pts' cannot take a rating back"):
        shop(tmp_path / "shop", policy=PTS())
    assert not (tmp_path / "shop").exists()
    with Recommender(tmp_path / "stars", scale=(1, 5), policy=PTS(n_particles=5)) as stars, pytest.raises(BadValue, match="cannot take"):
        stars.set_rewards({"click": 1})
    with pytest.raises(InvalidInput, match=r"such as (.*)$") as refusal:
        Recommender(tmp_path / "silent", scale=(1, 5), policy=PTS(), silence=(60.0, 1.0))
    named = re.findall(r"[\w-]+", str(refusal.value).partition("such as ")[2].replace(" or ", ", "))
    for name in named:
        with Recommender(tmp_path / name, scale=(1, 5), policy=name) as able:
            assert able.set_rewards({"click": 1}).events == {"click": 1.0}
    assert len(named) == 3
    with shop(tmp_path / "shop") as here:
        here.report(here.recommend("ann", candidates=["tea"]), "click")
    assert main(["replay", str(tmp_path / "shop"), str(tmp_path / "other"), "--policy", "pts"]) != 0
    assert main(["replay", str(tmp_path / "shop"), str(tmp_path / "other"), "--policy", "mean-field"]) == 0


@pytest.mark.parametrize("events", [{"click": 1.0}, {"click": 1.0, "like": 1.0}])
def test_events_of_one_reward_do_not_give_the_scale(events: dict[str, float], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"the same reward, click=1.*impression=0, or the scale too \(--scale 0\.\.1") as refused:
        Recommender(tmp_path / "shop", events=events)
    assert "missing" not in str(refused.value)
    with Recommender(tmp_path / "shop", events=events, scale=(0, 1)) as here:
        assert here.version().scale == (0.0, 1.0)


@pytest.mark.parametrize("events", [{"click": 1.0}, {"click": 7.0}, {"a\n": 1.0}, {"click": float("nan")}])
def test_events_that_cannot_be_make_no_folder(events: dict[str, float], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="accepted"):
        Recommender(tmp_path / "shop", events=events, scale=None if events == {"click": 1.0} else (1, 5))
    assert not (tmp_path / "shop").exists()


def test_whoever_is_forgotten_leaves_no_event_behind(tmp_path: Path) -> None:
    with shop(tmp_path / "shop") as here:
        for user in ("ann", "bob"):
            decision = here.recommend(user, candidates=["tea"])
            here.report(decision, "click", event_id=f"{user} clicks")
            here.report(decision, "purchase")
        assert here.forget_user("ann").events == 3
        assert here.version().ratings == 1
        late = here.report_item("ann", "tea", "click", event_id="ann clicks")
        assert (late.duplicate, late.applied) == (True, False)
        with Recommender(tmp_path / "other", events=EVENTS, policy=ALB(rank=2)) as other:
            decision = other.recommend("bob", candidates=["tea"])
            other.report(decision, "click")
            other.report(decision, "purchase")
            assert other.version().state_id == here.version().state_id
    assert main(["verify", str(tmp_path / "shop")]) == 0


def test_a_hundred_changes_of_mind_are_found_by_few_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_of(tmp_path / "shop") as engine:
        decision = engine.ask(Recommend("ann", candidates=["tea"])).decision_id
        batch = [Feedback(f"e{number}", None, decision, event=("click", "cart")[number % 2]) for number in range(100)]
        engine.ask(FeedbackBatch(batch))
        looks: list[bytes] = []
        find = LogReader.find

        def looking(self: LogReader, handle: bytes) -> Found | None:
            looks.append(handle)
            return find(self, handle)

        monkeypatch.setattr(LogReader, "find", looking)
        engine.ask(Feedback("last", None, decision, event="purchase"))
        assert len(looks) < 20
        assert engine._model.ratings == 1
        events = [event for _, event in read_events(engine._store)]
        assert getattr(events[-1], "number", None) == 100


def test_events_are_exported_and_the_doctor_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with shop(tmp_path / "shop") as here:
        decision = here.recommend("ann", candidates=["tea"])
        here.report(decision, "click")
        here.report(decision, "purchase")
        here.set_rewards({"click": 2})
    assert main(["export", str(tmp_path / "shop"), str(tmp_path / "events.jsonl")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    told = [(row["event"], row["rating"], row["replaces"]) for row in rows if row["kind"] == "feedback"]
    assert told == [("click", 1.0, None), ("purchase", 5.0, 4)]
    assert main(["export", str(tmp_path / "shop"), str(tmp_path / "events.parquet")]) == 0
    assert main(["doctor", str(tmp_path / "shop")]) == 0
    assert "events click = 2" in capsys.readouterr().out
