"""A simulated public before a service: what it does there, and what it needs."""

from collections import Counter
from pathlib import Path

import pytest
from live import Live

from albatross import Recommender
from albatross.cli import main
from albatross.core.errors import InvalidInput
from albatross.environments.shop import Shop
from albatross.policies.item_mean import ItemMean
from albatross.service.storage.events import Decided, Described, Joined, Reacted, Retire
from albatross.service.storage.reading import read_events
from albatross.service.tools.playing import EVENTS, PIECES, Play

SMALL = Shop(n_users=20, n_items=30, candidates=12, day=100, pace=15, categories=3, level=0.0, buying=0.5)


def test_a_public_does_what_a_shop_sees(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", events=EVENTS, policy=ItemMean()) as shop:
        shop.upsert_item("somebody else's")
        playing = Play(shop, visits=120, shop=SMALL)
        playing.open()
        stages = list(playing.visits())
        played = stages[-1]
        events = [event for _, event in read_events(shop.engine._store)]
        rows = Counter(type(event) for event in events)
        named = Counter(event.event for event in events if isinstance(event, Reacted))
        visitors = {event.user for event in events if isinstance(event, Decided) and event.user.startswith("visitor-")}
        assert [stage.visits for stage in stages] == list(range(1, 121))
        assert rows[Decided] == 120 - played.refused
        assert named["click"] == played.clicks > named["purchase"] == named["cart"] == played.purchases > 0
        assert named["impression"] == played.shown - played.clicks
        assert rows[Joined] == played.joins > 0
        assert rows[Retire] == 119 // SMALL.pace
        assert len(visitors) > played.joins / 2
        assert shop.version().users < len(visitors)
        sold = Counter(event.item for event in events if isinstance(event, Reacted) and event.event == "purchase")
        gone = [event for event in events if isinstance(event, Described) and event.said.in_stock is False]
        assert len(gone) > 0
        assert all(sold[event.item] >= PIECES for event in gone)
        assert any(event.rules is not None and event.rules.where for event in events if isinstance(event, Decided))
    assert main(["verify", str(tmp_path / "shop"), "--decisions"]) == 0


def test_a_service_without_its_events_is_refused(tmp_path: Path) -> None:
    with Recommender(tmp_path / "shop", events={"click": 1, "buy": 5}, policy=ItemMean()) as shop:
        with pytest.raises(InvalidInput, match="has the events click, buy; accepted: one that has impression=0, cart=3, purchase=5 too"):
            Play(shop, visits=1).open()
        assert shop.version().items == 0


def test_the_command_plays_and_says_what_was_sold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recommender(tmp_path / "shop", events=EVENTS, policy=ItemMean()):
        pass
    with Live(tmp_path / "shop", scale=None) as live:
        assert main(["play", f"http://127.0.0.1:{live.port}", "--visits", "12", "--per-second", "0"]) == 0
        assert capsys.readouterr().out.startswith("12 visits: ")
        assert main(["play", f"http://127.0.0.1:{live.port}", "--visits", "0"]) == 2
        assert main(["play", f"http://127.0.0.1:{live.port}", "--per-second", "-1"]) == 2
        assert "per-second is -1.0; accepted: a number from 0 on" in capsys.readouterr().err
