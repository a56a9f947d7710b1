"""The JavaScript client in Node: the verbs and errors of the Python one, and asking again without counting twice."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live import Live
from losing import Losing

from albatross import Client, Recommender
from albatross.service.api.errors import BY_CODE, Refused
from albatross.service.api.rules import Fresh
from albatross.service.api.verbs import Verbs
from albatross.service.http.documents.pages import CLIENT, CLIENT_TYPES, client_files

pytestmark = pytest.mark.xdist_group("service-http")

SCRIPTS = Path(__file__).parent / "javascript"
MODULE = client_files()[CLIENT].content.decode()
TYPES = client_files()[CLIENT_TYPES].content.decode()


def life(shop: Any) -> dict[str, Any]:
    """As life.mjs."""
    shop.upsert_item("water")
    decision = shop.recommend("ann", candidates=["tea", "coffee", "mate"], explain=True)
    first = shop.rate(decision, 4)
    slate = shop.recommend("ann", n=2, exclude=["tea"], exclude_seen="rated")
    second = shop.rate(slate.decision_id, 2, "water", event_id="e-2")
    again = [shop.rate_item("bob", "tea", 5, event_id="e-3") for _ in range(2)]
    shop.set_rewards({"click": 2, "purchase": 5})
    shop.report_item("bob", "mate", "click")
    bought = shop.recommend("eve", candidates=["coffee"])
    shop.report(bought, "click")
    shop.report(bought.decision_id, "purchase", "coffee")
    shop.upsert_item("cup", attributes={"kind": "gifts", "price": 9}, available_until=4e9, in_stock=True)
    ruled = shop.recommend("eve", 2, where={"attribute": "price", "from": 1}, quotas={"kind": 1}, fresh=Fresh(0.5), by="popular")
    shop.similar_items("tea")
    shop.retire_item("water")
    shop.restore_item("water")
    shop.join(shop.recommend(None, candidates=["tea"]).user, "eve")
    view = shop.user("ann", 3)
    forgotten = shop.forget_user("bob")
    series, version = shop.series(), shop.version()
    refusals = []
    wrongs: list[Callable[[], Any]] = [
        lambda: shop.rate("nowhere", 3),
        lambda: shop.rate_item("ann", "tea", 6),
        lambda: shop.rate_item("ann", "tea", float("nan")),
        lambda: shop.rate_item("ann", "tea", 3, event_id="e-2"),
        lambda: shop.rate(decision, 3),
        lambda: shop.recommend("ann", candidates=[]),
        lambda: shop.recommend("ann", candidates=["tea"], exclude=["tea"]),
        lambda: shop.user("nobody"),
        lambda: shop.retire_item("nothing"),
    ]
    for wrong in wrongs:
        with pytest.raises(Refused) as caught:
            wrong()
        refusals.append([type(caught.value).__name__, caught.value.status, caught.value.code])
    return {
        "shown": [[shown.item, shown.score, shown.propensity] for each in (decision, slate, ruled) for shown in each.items],
        "accepted": [[each.seq, each.applied, each.duplicate] for each in (first, second, *again)],
        "view": [view.ratings, [each.item for each in view.top]],
        "forgotten": forgotten.user,
        "ratings": series.ratings,
        "version": [version.seq, version.ratings, version.state_id],
        "listed": 1,
        "refusals": refusals,
    }


@pytest.fixture
def node(tmp_path: Path) -> Callable[..., Any]:
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no node on this machine")
    (tmp_path / "albatross.mjs").write_text(MODULE, encoding="utf-8")

    def run(script: str, name: str, *arguments: Any) -> Any:
        command = [program, SCRIPTS / "run.mjs", tmp_path / "albatross.mjs", SCRIPTS / script, name, json.dumps(arguments)]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_a_life_told_in_javascript_is_the_life_told_in_python(tmp_path: Path, node: Any) -> None:
    with Recommender(tmp_path / "python", scale=(1, 5)) as shop:
        here = life(shop)
    with Live(tmp_path / "javascript") as live:
        assert live.get(CLIENT.decode()).body.decode() == MODULE
        assert live.get(CLIENT.decode()).headers["content-type"] == "text/javascript; charset=utf-8"
        assert live.get(CLIENT_TYPES.decode()).body.decode() == TYPES
        assert node("life.mjs", "life", f"http://localhost:{live.port}/") == here


def test_what_got_no_answer_is_sent_again_and_counts_once(shop: Live, node: Any) -> None:
    with Client(f"http://localhost:{shop.port}") as watcher, Losing(shop.port, b"/v1/recommend", b"/v1/feedback") as losing:
        before = watcher.version()
        told = node("life.mjs", "visit", f"http://127.0.0.1:{losing.port}")
        after = watcher.version()
    assert losing.asked == [b"/v1/recommend"] * 2 + [b"/v1/feedback"] * 2
    assert told["duplicate"]  # the first time, it was applied and the answer was lost
    assert (after.decisions - before.decisions, after.ratings - before.ratings) == (1, 1)


def test_a_visitor_turns_out_to_be_a_user(shop: Live, node: Any) -> None:
    told = node("life.mjs", "meet", f"http://localhost:{shop.port}", "met in javascript")
    assert told["visitor"]
    assert told["ratings"] == 1


class Scripted(Client):
    """Hears what a script says."""

    script: list[tuple[int, str]]
    bodies: set[bytes | None]

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, float, bytes]:
        self.bodies.add(body)
        status, advice = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if status == 0:
            raise ConnectionResetError("the answer was lost")
        content = b'{"code": "overloaded", "detail": "later"}'
        if status == 200:
            content = b'{"seq": 1, "applied": true, "duplicate": false, "model_seq": 1}'
        return status, float(advice) if advice.isdigit() else 0.0, content


@pytest.mark.parametrize(
    ("script", "patience"),
    [
        ([(0, ""), (429, "1"), (503, ""), (409, "0"), (200, "")], 10),
        ([(0, "")], 10),
        ([(503, "x")], 3),
        ([(429, "30")], 10),
        ([(0, ""), (422, "")], 10),
        ([(500, "")], 10),
        ([(200, "")], 0),
    ],
)
def test_both_clients_wait_alike(monkeypatch: pytest.MonkeyPatch, node: Any, script: list[tuple[int, str]], patience: float) -> None:
    clock, waited = [0.0], []

    def sleep(seconds: float) -> None:
        waited.append(round(seconds, 6))
        clock[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Scripted("http://localhost:1", patience=patience) as asking:
        asking.script, asking.bodies = list(script), set()
        try:
            asking.rate_item("ann", "tea", 3)
            end = "answered"
        except (Refused, ConnectionError) as error:
            end = type(error).__name__
    assert len(asking.bodies) == 1
    assert node("pauses.mjs", "pauses", script, patience) == [waited, end, 1]


def test_verbs_and_errors_are_those_of_python() -> None:
    words = [name for name in vars(Verbs) if not name.startswith("_") and name not in ("ask", "close")]
    verbs = {re.sub(r"_(\w)", lambda found: found[1].upper(), word) for word in words}
    methods = set(re.findall(r"^  (?:async )?([a-z]\w*)\(", MODULE, re.MULTILINE)) - {"constructor", "ask"}
    declared = TYPES.partition("export class Client {")[2].partition("\n}")[0]
    assert methods == verbs == set(re.findall(r"^  ([a-z]\w*)\(", declared, re.MULTILINE)) - {"constructor", "ask"}
    table = MODULE.partition("export const BY_CODE = {")[2].partition("};")[0]
    assert dict(re.findall(r'"?([\w-]+)"?: (\w+),', table)) == {code: kind.__name__ for code, kind in BY_CODE.items()}


def test_what_is_no_url_is_refused(node: Any, tmp_path: Path) -> None:
    (tmp_path / "make.mjs").write_text(
        "export const make = async ({Client}, url) => { try { return new Client(url, {key: 'alb_secret'}) } catch (e) { return e.name } };"
    )
    for wrong in ("localhost:8000", "ftp://localhost", "http://", "/shop", "http://localhost/?x=1"):
        assert node(str(tmp_path / "make.mjs"), "make", wrong) == "TypeError", wrong
    assert node(str(tmp_path / "make.mjs"), "make", "http://localhost:8000/") == {"url": "http://localhost:8000", "patience": 10}


def test_types_hold(tmp_path: Path) -> None:
    """The module against its types, and a program that uses both; what is wrong in it is found."""
    program = shutil.which("tsc")
    if program is None:
        pytest.skip("there is no tsc on this machine: npm install typescript")
    (tmp_path / "albatross.d.ts").write_text(TYPES, encoding="utf-8")
    (tmp_path / "albatross.js").write_text(MODULE, encoding="utf-8")
    (tmp_path / "module.js").write_text(MODULE, encoding="utf-8")  # under its own name, its types would be taken for it
    shutil.copy(SCRIPTS / "use.ts", tmp_path)
    flags = ["--noEmit", "--strict", "--allowJs", "--checkJs", "--lib", "es2023,dom"]
    flags += ["--target", "es2023", "--module", "esnext", "--moduleResolution", "bundler"]
    done = subprocess.run([program, *flags, "module.js", "use.ts"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
