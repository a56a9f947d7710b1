"""Silence counts as an answer after a time, by an event of the log; what comes later takes its place."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.policies.alb import ALB
from albatross.policies.pts import PTS
from albatross.service.api.errors import AlreadyRated
from albatross.service.api.requests import AskVersion, ListEvents, ViewDecision
from albatross.service.engine import group
from albatross.service.engine.learned import silence
from albatross.service.settings.kinds import SILENCE
from albatross.service.storage import snapshots
from albatross.service.storage.events import Reacted
from albatross.service.storage.reading import read_events

EVENTS = {"click": 1.0, "purchase": 5.0, "impression": 0.0}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is, for the engine."""
    now = [1000.0]
    for module in (group, silence):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    return now


def shop(folder: Path, **options: Any) -> Recommender:
    return Recommender(folder, events=EVENTS, policy=options.pop("policy", ALB(rank=2)), silence=(1800.0, 0.0), **options)


def looked(here: Recommender) -> int:
    """How many ratings there are once the engine has looked: it does so behind every group."""
    here.ask(AskVersion("none"))
    return here.ask(AskVersion("none")).ratings


def test_what_nobody_answers_counts_as_silence_once_its_time_has_come(tmp_path: Path, clock: list[float]) -> None:
    with shop(tmp_path / "shop") as here:
        answered, silent = here.recommend("ann", 2, candidates=["tea", "mate"]), here.recommend("bob", candidates=["tea"])
        here.report(answered, "purchase", "tea")
        clock[0] = 2799.0
        assert looked(here) == 1
        clock[0] = 2800.0
        assert looked(here) == 3
        assert looked(here) == 3  # once
        found = {(item.item, item.rating, item.event) for item in here.ask(ViewDecision(answered.decision_id)).items}
        assert found == {("tea", 5.0, "purchase"), ("mate", 0.0, "silence")}
        assert here.ask(ViewDecision(silent.decision_id)).items[0].event == "silence"
        state = here.version().state_id
    for _ in range(2):
        with shop(tmp_path / "shop") as here:
            assert looked(here) == 3
            assert here.version().state_id == state
        snapshots.remove_all(tmp_path / "shop")
    assert main(["verify", str(tmp_path / "shop"), "--decisions"]) == 0


def test_what_comes_later_takes_the_place_of_silence(tmp_path: Path, clock: list[float]) -> None:
    with shop(tmp_path / "shop") as here:
        decisions = [here.recommend("ann", candidates=[item]) for item in ("tea", "mate", "cup")]
        clock[0] = 3000.0
        assert looked(here) == 3
        here.report(decisions[0], "purchase")
        here.rate(decisions[1], 4.0)
        with pytest.raises(AlreadyRated):
            here.rate(decisions[1], 3.0)
        assert looked(here) == 3
        told = [here.ask(ViewDecision(decision.decision_id)).items[0] for decision in decisions]
        assert [(item.rating, item.event) for item in told] == [(5.0, "purchase"), (4.0, None), (0.0, "silence")]
        assert here.series().reward == [5.0, 4.0, 0.0]
        assert [row.kind for row in here.ask(ListEvents(3)).events] == ["feedback"] * 3
        assert here.forget_user("ann").events == 8
        assert here.version().ratings == 0
    assert main(["verify", str(tmp_path / "shop")]) == 0


def test_a_long_backlog_is_worked_off_in_parts(tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "LOOKS_AT_ONCE", 7)
    with Recommender(tmp_path / "shop", events=EVENTS, policy=ALB(rank=2)) as here:
        for number in range(30):
            here.recommend(f"u{number}", candidates=["tea"])
    clock[0] = 1e6
    with shop(tmp_path / "shop") as here:
        for _ in range(20):
            looked(here)
        assert looked(here) == 30
        silent = [event for _, event in read_events(here.engine._store) if isinstance(event, Reacted)]
        assert len({event.decision for event in silent}) == 30
    assert main(["verify", str(tmp_path / "shop")]) == 0


def test_a_backlog_of_long_slates_lets_others_through(tmp_path: Path, clock: list[float]) -> None:
    """The engine answers others between two parts, so a part has few items, not only few decisions."""
    with Recommender(tmp_path / "shop", events=EVENTS, policy=ALB(rank=2)) as here:
        for number in range(30):
            here.recommend(f"u{number}", 20, candidates=[f"i{item}" for item in range(20)])
        clock[0] = 1e6
        part = silence.given_up(here.engine._model, here.engine._store, silence.Silence(1800.0, 0.0))
        assert part is not None
        assert len(part.decisions) == 7  # 140 items; the limit is 128
    with shop(tmp_path / "shop") as here:
        for _ in range(20):
            looked(here)
        assert looked(here) == 600
    assert main(["verify", str(tmp_path / "shop")]) == 0


def test_without_a_stance_silence_teaches_nothing(tmp_path: Path, clock: list[float]) -> None:
    with Recommender(tmp_path / "shop", events=EVENTS, policy=ALB(rank=2)) as here:
        here.recommend("ann", candidates=["tea"])
        clock[0] = 1e9
        assert looked(here) == 0


def test_silence_that_cannot_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No folder is made: it would keep the scale and the policy that are at fault."""
    with pytest.raises(InvalidInput, match="silence counts for 9; accepted: a number from 0 to 5"):
        Recommender(tmp_path / "shop", events=EVENTS, silence=(1.0, 9.0))
    with pytest.raises(InvalidInput, match=r"silence is after 2e\+09 seconds; accepted: more than 0, less than 1e\+09"):
        Recommender(tmp_path / "shop", events=EVENTS, silence=(2e9, 0.0))
    with pytest.raises(InvalidInput, match=r"cannot take a rating back.*accepted for silence: .* mean-field"):
        Recommender(tmp_path / "stars", scale=(1, 5), policy=PTS(n_particles=5), silence=(1.0, 1.0))
    for command in ("doctor", "serve"):
        assert main([command, str(tmp_path / "shop"), "--events", "click=1,purchase=5", "--silence", "30m=0", "--port", "0"]) == 2
        said = capsys.readouterr()
        assert "silence counts for 0; accepted: a number from 1 to 5" in " ".join((said.out + said.err).split())
    assert not list(tmp_path.iterdir())
    with Recommender(tmp_path / "stars", scale=(1, 5), policy=PTS(n_particles=5)):
        pass
    with pytest.raises(InvalidInput, match="accepted for silence"):
        Recommender(tmp_path / "stars", silence=(1.0, 1.0))
    assert main(["doctor", str(tmp_path / "stars"), "--silence", "30m=1"]) == 2
    assert "accepted for silence" in " ".join(capsys.readouterr().out.split())
    for wrong in ("30m", "=0", "30=0", "-1m=0", "30m=x", "nanm=0"):
        with pytest.raises(InvalidInput, match="accepted: a time and a reward"):
            SILENCE.read("--silence", wrong)
