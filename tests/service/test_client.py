"""`Client`: the verbs and results of `Recommender`, and asking again without counting twice."""

import inspect
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from live import Live

from albatross import Client, Recommender
from albatross.service.api.answers import Accepted
from albatross.service.api.errors import BadValue, EventReused, NoEligibleCandidate, Refused, UnknownDecision, UnknownUser, Unreachable
from albatross.service.api.rules import Fresh
from albatross.service.http.access.keys import Keys

pytestmark = pytest.mark.xdist_group("service-http")


def script(shop: Any) -> list[Any]:
    """A life in both; what a folder's random name and the clock decide is left out."""
    shop.upsert_item("water")
    decision = shop.recommend("ann", candidates=["tea", "coffee", "mate"], explain=True)
    told = [(shown.item, shown.score, shown.mean, shown.propensity) for shown in decision.items]
    first = shop.rate(decision, 4.0)
    by_id = shop.rate(shop.recommend("ann", n=2, exclude=["tea"], exclude_seen="rated").decision_id, 2, "water", event_id="e-2")
    again = shop.rate_item("bob", "tea", 5, event_id="e-3"), shop.rate_item("bob", "tea", 5, event_id="e-3")
    reported = shop.set_rewards({"click": 2, "purchase": 5}), shop.report_item("bob", "mate", "click", event_id="e-4")
    bought = shop.recommend("eve", candidates=["coffee"])
    replaced = shop.report(bought, "click", event_id="e-5"), shop.report(bought.decision_id, "purchase", "coffee", event_id="e-6")
    shop.upsert_item("cup", attributes={"kind": "gifts", "price": 9}, available_until=4e9, in_stock=True)
    ruled = shop.recommend("eve", 2, where={"attribute": "price", "from": 1}, quotas={"kind": 1}, fresh=Fresh(0.5), by="popular")
    ruled_items = [(shown.item, shown.propensity) for shown in ruled.items], shop.similar_items("tea")
    visit = shop.recommend(None, candidates=["tea"])
    joined = shop.report(visit, "click", event_id="e-7").applied, shop.join(visit.user, "eve").user, shop.join(visit.user, "eve").joined
    retired = shop.retire_item("water"), shop.restore_item("water")
    view, series, forgotten = shop.user("ann", n=3), shop.series(), shop.forget_user("bob")
    return [
        told,
        decision.explanation,
        first,
        by_id,
        again,
        reported,
        replaced,
        ruled_items,
        joined,
        retired,
        view,
        series,
        forgotten,
        shop.version().state_id,
        shop.snapshot().state_id,
    ]


def refusals(shop: Any) -> list[tuple[str, int, str]]:
    wrong: list[Callable[[], Any]] = [
        lambda: shop.rate("nowhere", 3.0),
        lambda: shop.rate_item("ann", "tea", 6.0),
        lambda: shop.rate_item("ann", "tea", float("nan")),
        lambda: shop.rate_item("", "tea", 3.0),
        lambda: shop.rate_item("ann", "tea", 3.0, event_id="e-2"),
        lambda: shop.recommend("ann", candidates=[]),
        lambda: shop.recommend("ann", candidates=["tea"], exclude=["tea"]),
        lambda: shop.recommend("ann", n=0),
        lambda: shop.recommend("ann", candidates="tea"),
        lambda: shop.recommend("\ud800"),
        lambda: shop.user("nobody"),
        lambda: shop.retire_item("nothing"),
        lambda: shop.report_item("ann", "tea", "klick"),
        lambda: shop.set_rewards({"click": 9}),
        lambda: shop.set_rewards({}),
        lambda: shop.upsert_item("cup", attributes={"price": True}),
        lambda: shop.recommend("ann", where={"attribute": "price"}),
        lambda: shop.recommend("ann", where={"attribute": "price", "from": 1e6}),
        lambda: shop.similar_items("nothing"),
    ]
    found = []
    for act in wrong:
        with pytest.raises(Refused) as caught:
            act()
        found.append((type(caught.value).__name__, caught.value.status, caught.value.code))
    return found


def test_embedded_and_remote_give_the_same_results_and_the_same_errors(tmp_path: Path) -> None:
    with Recommender(tmp_path / "embedded", scale=(1, 5)) as embedded:
        here, wrong_here = script(embedded), refusals(embedded)
    with Live(tmp_path / "remote") as live, Client(f"http://localhost:{live.port}") as remote:
        there, wrong_there = script(remote), refusals(remote)
    assert there == here
    assert wrong_there == wrong_here
    kinds = {name for name, _, _ in wrong_here}
    assert kinds >= {kind.__name__ for kind in (BadValue, EventReused, NoEligibleCandidate, UnknownDecision, UnknownUser)}


def test_the_verbs_have_the_same_signatures() -> None:
    verbs = [name for name, _ in inspect.getmembers(Recommender, inspect.isfunction) if not name.startswith("_")]
    assert {"recommend", "rate", "rate_item", "user", "version", "close"} <= set(verbs)
    for verb in verbs:
        assert inspect.signature(getattr(Client, verb)) == inspect.signature(getattr(Recommender, verb)), verb


class Unreliable(Client):
    """Loses the answer of every other request, after it was given, or hears that the service is busy."""

    asked = 0
    bodies: list[bytes | None]

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, float, bytes]:
        self.bodies.append(body)
        self.asked += 1
        if self.asked % 3 == 2:
            return 429, 0.0, b'{"code": "overloaded", "detail": "later"}'
        answer = super()._once(method, path, body)
        if self.asked % 3 == 1:
            raise ConnectionResetError("the answer was lost")
        return answer


def test_what_got_no_answer_is_sent_again_and_counts_once(shop: Live) -> None:
    with Unreliable(f"http://localhost:{shop.port}") as client:
        client.bodies = []
        before = client.version()
        client.asked, client.bodies = 0, []
        decision = client.recommend("lost", candidates=["l1", "l2"])
        answer = client.rate(decision, 4.0)
        assert client.asked == 6
        assert len(set(client.bodies[:3])) == len(set(client.bodies[3:])) == 1
        assert answer.duplicate  # the first time, the answer was lost
        after = client.version()
        assert (after.decisions - before.decisions, after.ratings - before.ratings) == (1, 1)


def test_patience_ends_with_what_was_last_heard() -> None:
    with pytest.raises(Unreachable, match="localhost:9"), Client("http://localhost:9", patience=0.0) as nobody:
        nobody.version()


def test_many_threads_share_one_client(shop: Live) -> None:
    answers: list[Accepted] = []
    with Client(f"http://localhost:{shop.port}") as client:
        before = client.version().ratings

        def work(number: int) -> None:
            answers.extend(client.rate_item(f"u{number}", f"i{step}", 3.0) for step in range(10))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({answer.seq for answer in answers}) == 80
        assert client.version().ratings == before + 80


@pytest.fixture
def key_holder(tmp_path: Path) -> Iterator[tuple[Live, str]]:
    folder = tmp_path / "shop"
    folder.mkdir()
    key = Keys(folder).create(["read"])
    with Live(folder) as live:
        yield live, key


def test_with_a_key(key_holder: tuple[Live, str]) -> None:
    live, key = key_holder
    with Client(f"http://localhost:{live.port}", key) as reader:
        assert msgspec.to_builtins(reader.version())["ratings"] == 0
        assert key not in repr(reader)
        with pytest.raises(Refused, match="scope") as caught:
            reader.rate_item("ann", "tea", 3.0)
        assert caught.value.status == 403
    with pytest.raises(Refused, match="no key"), Client(f"http://localhost:{live.port}") as stranger:
        stranger.version()


def test_what_is_no_url_is_refused() -> None:
    for wrong in ("localhost:8000", "ftp://localhost", "http://", "http://localhost/?shop=tea"):
        with pytest.raises(ValueError, match="accepted"):
            Client(wrong)
