"""Short lives that use kinds of events which came after the first golden logs: `python kinds.py NAME FOLDER` writes one of them.

What is written once opens for ever: a log is added for a new kind, and no log is ever written anew.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from albatross import Recommender
from albatross.policies.alb import ALB
from albatross.service.api.requests import ListItems, ViewDecision, ViewUser
from albatross.service.api.rules import By, Fresh


def events(folder: Path) -> dict[str, Any]:
    """Events with names, one in the place of another, and other rewards from the middle on."""
    with Recommender(folder, events={"impression": 0, "click": 1, "cart": 3, "purchase": 5}, policy=ALB(rank=2)) as shop:
        decisions = [shop.recommend(f"u{number % 3}", candidates=[f"i{number}", f"i{number + 1}"]) for number in range(6)]
        for number, decision in enumerate(decisions):
            shop.report(decision, ("impression", "click")[number % 2], event_id=f"first {number}")
        shop.rate_item("u1", "i2", 2.5)
        shop.set_rewards({"impression": 0, "click": 2, "purchase": 5})
        for number in (4, 1):
            shop.report(decisions[number], "purchase", event_id=f"then {number}")
        shop.report(decisions[4], "click", event_id="at last")
        shop.report_item("ü €", "i1", "click")
        shop.forget_user("u2")
        return facts(shop, decisions[4].decision_id)


def items(folder: Path) -> dict[str, Any]:
    """Items that are described, and decisions by rules."""
    with Recommender(folder, events={"click": 1, "purchase": 5}, policy=ALB(rank=2), floor=0.3) as shop:
        for number in range(8):
            shop.upsert_item(f"i{number}", attributes={"kind": f"k{number % 2}", "tags": ["ü €", "x"], "price": number / 2})
        shop.upsert_item("i3", in_stock=False, available_from=1e9, available_until=None)
        shop.upsert_item("i4", attributes={"kind": "k0"})
        where = {"all": [{"attribute": "kind", "is": ["k0", "k1"]}, {"none": [{"attribute": "price", "from": 3}]}]}
        ranked: tuple[By, ...] = ("policy", "popular", "new", "policy", "policy")
        decisions = [
            shop.recommend(f"u{number % 3}", 2, where=where, quotas={"kind": 1}, fresh=Fresh(0.2, 3), by=by)
            for number, by in enumerate(ranked)
        ]
        for decision in decisions:
            shop.report(decision, "purchase", decision.item)
        shop.upsert_item("i3", in_stock=True)
        return facts(shop, decisions[1].decision_id)


def silence(folder: Path) -> dict[str, Any]:
    """Silence, and what came later."""
    with Recommender(folder, events={"click": 1, "purchase": 5}, policy=ALB(rank=2), silence=(1e-6, 1.0)) as shop:
        decisions = [shop.recommend("u1", candidates=[f"i{number}", f"i{number + 1}"], n=2) for number in range(3)]
        while shop.version().ratings < 6:
            pass
        shop.report(decisions[1], "purchase", "i1")
        shop.rate(decisions[2], 2.5, "i3")
        return facts(shop, decisions[1].decision_id)


def retention(folder: Path) -> dict[str, Any]:
    """Decisions that were dropped, and one that was answered in time."""
    with Recommender(folder, events={"click": 1, "purchase": 5}, policy=ALB(rank=2)) as shop:
        answered = shop.recommend("u1", candidates=["i0", "i1"])
        shop.report(answered, "purchase")
        for number in range(4):
            shop.recommend(f"u{number}", 2, candidates=["i1", "i2", "i3"], request_id=f"request {number}")
    with Recommender(folder, retention=1e-6) as shop:
        while shop.version().seq < 12:
            pass
        return facts(shop, answered.decision_id)


def visitors(folder: Path) -> dict[str, Any]:
    """Visitors who are shown something and say something, and who turn out to be users: new ones, known ones, and another visitor."""
    with Recommender(folder, events={"click": 1, "purchase": 5}, policy=ALB(rank=2), floor=0.3) as shop:
        catalogue = [f"i{number}" for number in range(4)]
        decisions = [shop.recommend(None, 2, candidates=catalogue) for _ in range(5)]
        for decision in decisions[:4]:
            shop.report(decision, "click", decision.item)
        shop.rate_item("u1", "i0", 2.5)
        names = [decision.user for decision in decisions]
        shop.join(names[0], "u1")
        shop.join(names[1], "ü €")
        shop.join(names[4], names[2])
        shop.join(names[2], "u1")
        shop.report(decisions[4], "click", decisions[4].item)
        shop.report(decisions[0], "purchase", decisions[0].item)
        asked = shop.recommend(names[0], 2)
        shop.report(asked, "purchase", asked.item, user="u1")
        return facts(shop, decisions[0].decision_id)


def facts(shop: Recommender, decision: str) -> dict[str, Any]:
    """The result of a log, for every reader."""
    version, view = shop.version(), shop.ask(ViewDecision(decision)).items[0]
    names = ("ratings", "decisions", "users", "items", "events", "seq", "chain")
    history = shop.ask(ViewUser("u1", history=10)).history
    return {
        "version": {name: getattr(version, name) for name in names},
        "decision": decision,
        "answer": [view.item, view.rating, view.event],
        "history": [[entry.seq, entry.item, entry.rating, entry.event] for entry in history],
        "rewards": shop.series().reward,
        "described": [[entry.item, entry.attributes, entry.in_stock] for entry in shop.ask(ListItems()).items if entry.attributes],
    }


LIVES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "events": events,
    "items": items,
    "retention": retention,
    "silence": silence,
    "visitors": visitors,
}

if __name__ == "__main__":
    name, target = sys.argv[1], Path(sys.argv[2])
    found = LIVES[name](target)
    (target / "facts.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
