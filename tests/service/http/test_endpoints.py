"""The endpoints, over loopback, against a real server process."""

import http.client
import json
from typing import Any

import pytest
from live import Live, Reply

from albatross.service.api.route import Route
from albatross.service.api.routes import ROUTES

pytestmark = pytest.mark.xdist_group("service-http")


def accepted(reply: Reply) -> Any:
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == "application/json"
    return reply.json


def refused(reply: Reply, status: int, code: str) -> Any:
    """Every error is a problem document, complete and true to its status."""
    assert reply.status == status, reply.body
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json
    assert set(problem) == {"type", "title", "status", "detail", "code"}
    assert (problem["status"], problem["code"], problem["type"]) == (status, code, f"urn:albatross:problem:{code}")
    assert problem["detail"]
    return problem


def test_ask_rate_and_the_next_answer_knows(shop: Live) -> None:
    decision = accepted(shop.post("/v1/recommend", {"user": "reader", "candidates": ["r1", "r2", "r3"]}))
    assert set(decision) >= {"decision_id", "user", "policy", "model_seq", "items", "user_ratings"}
    assert decision["policy"] == "mean-field"
    (shown,) = decision["items"]
    assert shown["item"] in ("r1", "r2", "r3")
    assert shown["score"] == shown["mean"] + shown["bonus"]
    assert 0 < shown["propensity"] <= 1
    answer = accepted(shop.post("/v1/feedback", {"event_id": "r-1", "decision_id": decision["decision_id"], "rating": 4}))
    assert answer["applied"]
    assert not answer["duplicate"]
    after = accepted(shop.post("/v1/recommend", {"user": "reader", "candidates": ["r1", "r2", "r3"]}))
    assert after["model_seq"] >= answer["seq"]
    assert after["user_ratings"] == decision["user_ratings"] + 1


def test_a_request_id_gives_the_same_decision_again(shop: Live) -> None:
    question = {"user": "again", "n": 2, "candidates": ["a1", "a2", "a3", "a4"], "request_id": "again-1"}
    assert accepted(shop.post("/v1/recommend", question)) == accepted(shop.post("/v1/recommend", question))


def test_the_same_event_counts_once_and_with_another_payload_not_at_all(shop: Live) -> None:
    event = {"event_id": "once-1", "user": "once", "item": "o1", "rating": 2.5}
    first = accepted(shop.post("/v1/feedback", event))
    again = accepted(shop.post("/v1/feedback", event))
    assert (again["seq"], again["duplicate"]) == (first["seq"], True)
    refused(shop.post("/v1/feedback", {**event, "rating": 3}), 422, "event-reused")


def test_what_does_not_exist(shop: Live) -> None:
    refused(shop.post("/v1/feedback", {"event_id": "x-1", "decision_id": "nowhere", "rating": 3}), 404, "unknown-decision")
    refused(shop.post("/v1/users/get", {"user": "nobody"}), 404, "unknown-user")
    refused(shop.post("/v1/items/retire", {"item": "nothing"}), 404, "unknown-item")
    for path in (
        "/v1/nothing",
        "/v1/recommend/",
        "/page/../v1/version",
        "/page/",
        "/index.html",
        "/V1/recommend",
        "//v1/recommend",
        "/v1/../healthz",
        "/%76%31/recommend",
    ):
        refused(shop.get(path), 404, "not-found")


def test_a_slate_excludes_what_it_should(shop: Live) -> None:
    accepted(shop.post("/v1/feedback", {"event_id": "s-1", "user": "slate", "item": "s1", "rating": 5}))
    question = {"user": "slate", "n": 2, "candidates": ["s1", "s2", "s3", "s4"], "exclude": ["s2"], "exclude_seen": "rated"}
    decision = accepted(shop.post("/v1/recommend", question))
    assert {shown["item"] for shown in decision["items"]} == {"s3", "s4"}
    assert [shown["rank"] for shown in decision["items"]] == [1, 2]
    assert decision["items"][1]["propensity"] == 1.0
    refused(shop.post("/v1/recommend", {**question, "candidates": ["s1", "s2"], "n": 1}), 422, "no-eligible-candidate")


def test_why_an_item_was_shown(shop: Live) -> None:
    question = {"user": "why", "candidates": ["w1", "w2"], "explain": True}
    accepted(shop.post("/v1/feedback", {"event_id": "w-1", "user": "why", "item": "w1", "rating": 4}))
    explanation = accepted(shop.post("/v1/recommend", question))["explanation"]
    (item,) = explanation["items"]
    assert item["score"] == item["mean"] + item["bonus"]
    assert 0 < item["width_after"] < item["width"]
    assert len(explanation["ellipsoid"]["eigenvalues"]) == len(explanation["ellipsoid"]["axes"]) == 6
    reasons = accepted(shop.post("/v1/recommend", {**question, "explain": "reasons"}))["explanation"]
    assert (reasons["ellipsoid"], reasons["items"][0]["why"]) == (None, ["new, so we try it"])
    reply = shop.post("/v1/recommend", {**question, "explain": "words"})
    refused(reply, 422, "bad-value")
    assert reply.json["detail"] == "explain: accepted: true, false, reasons"


def test_a_batch_has_a_status_line_for_each_line(shop: Live) -> None:
    lines = [
        '{"event_id": "b-1", "user": "batch", "item": "b1", "rating": 4}',
        '{"event_id": "b-2", "user": "batch", "item": "b1", "rating": 9}',
        "not JSON",
        "",
        '{"event_id": "b-1", "user": "batch", "item": "b1", "rating": 4}',
        '{"event_id": "b-3", "user": "batch", "item": "b2", "rating": NaN}',
        '{"event_id": "b-4", "user": "batch", "item": "b2", "rating": 1}',
    ]
    reply = shop.post("/v1/feedback/batch", "\n".join(lines) + "\n")
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/x-ndjson"
    answers = [json.loads(line) for line in reply.body.splitlines()]
    assert [answer["line"] for answer in answers] == [1, 2, 3, 4, 5, 6, 7]
    assert [answer["status"] for answer in answers] == [200, 422, 400, 400, 200, 422, 200]
    assert answers[4]["duplicate"]
    assert answers[4]["seq"] == answers[0]["seq"]
    assert accepted(shop.post("/v1/users/get", {"user": "batch"}))["ratings"] == 2


def test_a_retired_item_is_not_shown_until_it_is_restored(shop: Live) -> None:
    created = accepted(shop.post("/v1/items/upsert", {"item": "of the season"}))
    assert created["created"]
    assert not accepted(shop.post("/v1/items/upsert", {"item": "of the season"}))["created"]
    assert accepted(shop.post("/v1/items/retire", {"item": "of the season"}))["retired"]
    refused(shop.post("/v1/recommend", {"user": "items", "candidates": ["of the season"]}), 422, "no-eligible-candidate")
    assert not accepted(shop.post("/v1/items/restore", {"item": "of the season"}))["retired"]
    assert accepted(shop.post("/v1/recommend", {"user": "items", "candidates": ["of the season"]}))["items"][0]["item"] == "of the season"


def test_a_user_can_be_looked_at_and_forgotten(shop: Live) -> None:
    accepted(shop.post("/v1/feedback", {"event_id": "u-1", "user": "leaving", "item": "u1", "rating": 5}))
    view = accepted(shop.post("/v1/users/get", {"user": "leaving", "n": 3}))
    assert view["ratings"] == 1
    assert len(view["ellipsoid"]["eigenvalues"]) == len(view["vector"]) == 6
    assert 1 <= len(view["top"]) <= 3
    assert accepted(shop.post("/v1/users/forget", {"user": "leaving"}))["events"] >= 1
    refused(shop.post("/v1/users/get", {"user": "leaving"}), 404, "unknown-user")


def test_version_series_health_and_readiness(shop: Live) -> None:
    version = accepted(shop.get("/v1/version"))
    assert version["scale"] == [1.0, 5.0]
    assert len(version["state_id"]) >= 16
    assert version["seq"] >= version["ratings"]
    accepted(shop.post("/v1/feedback", {"event_id": "v-1", "user": "version", "item": "v1", "rating": 5}))
    after = accepted(shop.get("/v1/version"))
    assert after["state_id"] != version["state_id"]
    assert after["ratings"] == version["ratings"] + 1
    series = accepted(shop.get("/v1/series"))
    assert sum(series["ratings"]) == after["ratings"]
    assert len(series["reward"]) == len(series["calibration"]) == len(series["optimism"]) == len(series["ratings"])
    assert accepted(shop.get("/healthz")) == {"alive": True}
    assert accepted(shop.get("/readyz"))["phase"] == "ready"


def test_the_stream_tells_what_is_new(shop: Live) -> None:

    listener = http.client.HTTPConnection("127.0.0.1", shop.port)
    listener.request("GET", "/v1/stream")
    response = listener.getresponse()
    assert response.getheader("content-type", "").startswith("text/event-stream")

    def next_version() -> dict[str, Any]:
        while response.readline().strip() != b"event: version":
            pass
        line = response.readline()
        assert line.startswith(b"data: ")
        found: dict[str, Any] = json.loads(line[6:])
        return found

    before = next_version()["ratings"]
    accepted(shop.post("/v1/feedback", {"event_id": "n-1", "user": "news", "item": "n1", "rating": 5}))
    assert next_version()["ratings"] == before + 1
    response.close()
    listener.close()


def test_metrics_count_and_name_nobody(shop: Live) -> None:
    def count() -> float:
        text = shop.get("/metrics").body.decode()
        assert "secret-person" not in text
        assert "secret-thing" not in text
        (line,) = (line for line in text.splitlines() if line.startswith('albatross_requests_total{path="/v1/feedback",status="200"}'))
        return float(line.split()[-1])

    accepted(shop.post("/v1/feedback", {"event_id": "m-1", "user": "secret-person", "item": "secret-thing", "rating": 5}))
    before = count()
    accepted(shop.post("/v1/feedback", {"event_id": "m-2", "user": "secret-person", "item": "secret-thing", "rating": 5}))
    shop.get("/v1/secret-person")
    assert count() == before + 1
    assert shop.get("/metrics").headers["content-type"].startswith("text/plain")


def test_ids_are_kept_byte_for_byte(shop: Live) -> None:
    names = ["é", "e\u0301", " ", "../../etc/passwd", "a" * 256, "ß" * 128, "🦤", "</script>", "NULL", "\u202e", "'; DROP TABLE events; --"]
    for number, name in enumerate(names):
        accepted(shop.post("/v1/feedback", {"event_id": f"id-{number}-{name[:40]}", "user": name, "item": name, "rating": 3}))
    for name in names:
        view = accepted(shop.post("/v1/users/get", {"user": name}))
        assert view["user"] == name
        assert view["ratings"] == 1
        assert accepted(shop.post("/v1/recommend", {"user": name, "candidates": [name]}))["items"][0]["item"] == name


def test_whole_numbers_may_be_written_with_a_point(shop: Live) -> None:
    """As JSON Schema has it: 2.0 is an integer."""
    decision = accepted(shop.post("/v1/recommend", '{"user": "whole", "n": 2.0, "candidates": ["w3", "w4", "w5"]}'))
    assert len(decision["items"]) == 2
    refused(shop.post("/v1/recommend", '{"user": "whole", "n": 2.5, "candidates": ["w3", "w4", "w5"]}'), 422, "bad-value")


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", "application/x-www-form-urlencoded", "", "x"]
)
def test_what_a_body_is_called_does_not_matter(shop: Live, content_type: str) -> None:
    """A body sent by curl -d is called a form. Who a request may come from is checked by Host and Origin."""
    accepted(shop.post("/v1/recommend", {"user": "called", "candidates": ["c1"]}, {"Content-Type": content_type}))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_every_route_has_one_method(shop: Live, route: Route) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        if method != route.method:
            reply = shop.ask(method, route.path, b"{}" if method in ("POST", "PUT", "PATCH") else None)
            refused(reply, 405, "method-not-allowed")
            assert reply.headers["allow"] == ("GET, HEAD" if route.path == "/" else route.method)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.examples], ids=lambda route: route.path)
def test_the_examples_of_every_route_work(shop: Live, route: Route) -> None:
    accepted(shop.post("/v1/items/upsert", {"item": "tea", "attributes": {"category": "drinks"}}))
    shop.post("/v1/feedback", {"event_id": "example-of-ann", "user": "ann", "item": "tea", "rating": 4})
    for _, body in route.examples:
        reply = shop.post(route.path, body)
        if "decision_id" in body and isinstance(body, dict):
            refused(reply, 404, "unknown-decision")  # readers use their own decision
        elif "visitor" in body and isinstance(body, dict):
            refused(reply, 404, "unknown-user")  # the same
        else:
            assert reply.status == 200, reply.body
            assert reply.headers["content-type"] == route.gives


def test_a_visitor_gets_an_id_and_becomes_a_user(shop: Live) -> None:
    decision = accepted(shop.post("/v1/recommend", {"user": None, "candidates": ["visited tea"]}))
    accepted(shop.post("/v1/feedback", {"event_id": "of a visitor", "decision_id": decision["decision_id"], "rating": 4}))
    for expected in (True, False):
        joined = accepted(shop.post("/v1/users/join", {"visitor": decision["user"], "user": "visited"}))
        assert (joined["user"], joined["joined"]) == ("visited", expected)
    assert accepted(shop.post("/v1/users/get", {"user": decision["user"]}))["user"] == "visited"
    refused(shop.post("/v1/recommend", {"candidates": ["visited tea"]}), 422, "bad-value")
    refused(shop.post("/v1/users/join", {"visitor": decision["user"], "user": "somebody else"}), 422, "bad-value")
    refused(shop.post("/v1/users/join", {"visitor": None, "user": "visited"}), 422, "bad-value")


def test_a_later_event_takes_the_place_of_the_earlier_one(shop: Live) -> None:
    accepted(shop.post("/v1/rewards", {"events": {"click": 1, "purchase": 5}}))
    decision = accepted(shop.post("/v1/recommend", {"user": "shopper", "candidates": ["event tea"]}))["decision_id"]
    before = accepted(shop.get("/v1/version"))
    assert before["events"] == {"click": 1, "purchase": 5}
    for event in ("click", "purchase"):
        accepted(shop.post("/v1/feedback", {"event_id": f"shopper {event}", "decision_id": decision, "event": event}))
    assert accepted(shop.get("/v1/version"))["ratings"] == before["ratings"] + 1
    shown = accepted(shop.post("/v1/decisions/get", {"decision_id": decision}))["items"][0]
    assert (shown["event"], shown["rating"]) == ("purchase", 5)
    wrong = shop.post("/v1/feedback", {"event_id": "shopper klick", "decision_id": decision, "event": "klick"})
    refused(wrong, 422, "bad-value")
    assert "accepted: click, purchase" in wrong.json["detail"]
    lines = (
        '{"event_id": "l1", "user": "shopper", "item": "event tea", "event": "click"}\n{"event_id": "l2", "user": "s", "event": "click"}\n'
    )
    statuses = [json.loads(line)["status"] for line in shop.post("/v1/feedback/batch", lines).body.splitlines()]
    assert statuses == [200, 422]


def test_items_come_in_lines_and_are_filtered(shop: Live) -> None:
    lines = [json.dumps({"item": f"line{number}", "attributes": {"line": "even" if number % 2 == 0 else "odd"}}) for number in range(250)]
    lines[7] = '{"item": "line7", "attributes": {"line": true}}'
    reply = shop.post("/v1/items/batch", "\n".join(lines))
    answers = [json.loads(line) for line in reply.body.splitlines()]
    assert [answer["status"] for answer in answers] == [200] * 7 + [422] + [200] * 242
    assert all(answer["created"] for answer in answers if answer["status"] == 200)
    where = {"all": [{"attribute": "line", "is": "odd"}, {"none": [{"attribute": "line", "is": ["even"]}]}]}
    slate = accepted(shop.post("/v1/recommend", {"user": "reader", "n": 5, "where": where, "fresh": {"share": 0.5}}))["items"]
    assert all(int(item["item"][4:]) % 2 for item in slate)
    found = accepted(shop.post("/v1/items/list", {"search": "line12", "n": 20}))["items"]
    assert found[0]["attributes"] == {"line": "even"}
    refused(shop.post("/v1/recommend", {"user": "reader", "where": {"attribute": "line", "is": "neither"}}), 422, "no-eligible-candidate")
    refused(shop.post("/v1/recommend", {"user": "reader", "where": {"attribute": "line"}}), 422, "bad-value")
    assert "accepted" in shop.post("/v1/recommend", {"user": "reader", "where": {"lines": "x"}}).json["detail"]


def test_rules_may_come_with_many_candidates(shop: Live) -> None:
    """A long body is looked at before it is read; what a request may hold passes."""
    many = [f"one of many candidates, number {number}" for number in range(900)]
    rules = {"quotas": [{"attribute": "line", "most": 1}], "fresh": {"share": 0.5}, "by": "new"}
    where = {"none": [{"any": [{"attribute": "line", "is": ["even", "odd"]}, {"attribute": "price", "from": 1, "to": 2.5}]}]}
    accepted(shop.post("/v1/recommend", {"user": "reader", "n": 2.0, "candidates": many, "where": where, **rules}))
    labels = {f"a{number}": [f"{number} {label} " + "x" * 200 for label in range(60)] for number in range(4)}
    accepted(shop.post("/v1/items/upsert", {"item": "much to say", "attributes": labels}))
    for field, wrong in (
        ("where", "[" + "[]," * 10_000 + "[]]"),
        ("where", '{"all": [' + "{}," * 10_000 + "{}]}"),
        ("quotas", "[" + "{}," * 10_000 + "{}]"),
    ):
        refused(shop.post("/v1/recommend", f'{{"user": "reader", "{field}": {wrong}}}'), 422, "bad-value")
    assert shop.post("/v1/recommend", {"user": "u", "by": "luck"}).json["detail"] == "by: accepted: policy, popular, new"
    assert "accepted: user, n, candidates" in shop.post("/v1/recommend", {"user": "u", "category": "tea"}).json["detail"]
    detail = shop.post("/v1/recommend", {"user": "u", "where": {"category": "tea"}}).json["detail"]
    assert detail == "where: the field 'category' is unknown; accepted: all, any, none, attribute, is, from, to"


@pytest.mark.parametrize(
    ("path", "given", "detail"),
    [
        (
            "items/upsert",
            {"item": "i", "attributes": {"kind": True}},
            "attributes['kind'] is true; accepted: a label, a list of labels or a number",
        ),
        (
            "items/upsert",
            {"item": "i", "attributes": {"a": "b", "kind": {"c": 1}}},
            "attributes['kind'] is {\"c\": 1}; accepted: a label, a",
        ),
        ("items/upsert", {"item": "i", "attributes": {"a": ["b"], "kind": ["c", 1]}}, "attributes['kind'][1]: expected str, got int"),
        ("items/upsert", {"item": "i", "attributes": {"": "b"}}, "a name in attributes: accepted: text of 1 to 256 characters"),
        ("rewards", {"events": {"click": 1, "buy": "5"}}, "events['buy']: expected float, got str"),
        ("recommend", {"user": "u", "where": {"none": []}}, "where has an empty list in `none`; accepted: at least one condition"),
        ("recommend", {"user": "u", "where": {"attribute": "a", "is": []}}, "where has no label for 'a': `is` is an empty list; accepted:"),
        ("recommend", {"user": "u", "where": {"attribute": "a" * 250}}, 'accepted: {"attribute", "is"}, {"attribute", "from" and "to",'),
        ("items/batch", '{"item": "i"}\n\n{"item": "j"}\n', "the line is empty; accepted: one JSON document per line"),
    ],
)
def test_an_error_says_where_it_is_and_what_is_accepted(shop: Live, path: str, given: Any, detail: str) -> None:
    reply = shop.post(f"/v1/{path}", given)
    lines = [json.loads(line) for line in reply.body.splitlines()]
    assert detail in " ".join(line.get("detail") or "" for line in lines)


def test_a_byte_order_mark_is_named(shop: Live) -> None:
    detail = "it begins with a byte-order mark; accepted: JSON in UTF-8, without that mark"
    marked = '\ufeff{"event_id": "marked", "user": "u", "item": "i", "rating": 3}'.encode()
    assert refused(shop.post("/v1/feedback", marked), 400, "not-json")["detail"] == detail
    reply = shop.post("/v1/feedback/batch", marked + b'\n{"event_id": "after the mark", "user": "u", "item": "i", "rating": 3}')
    lines = [json.loads(line) for line in reply.body.splitlines()]
    assert [(line["status"], line.get("detail")) for line in lines] == [(400, detail), (200, None)]


def test_an_unknown_event_is_refused_with_the_whole_list(shop: Live) -> None:
    before = accepted(shop.get("/v1/version"))["events"]
    accepted(shop.post("/v1/rewards", {"events": {f"event {number}": 1 for number in range(40)}}))
    reply = shop.post("/v1/feedback", {"event_id": "long name", "user": "u", "item": "i", "event": "x" * 256})
    refused(reply, 422, "bad-value")
    assert reply.json["detail"] == f"event is '{'x' * 40}…'; accepted: {', '.join(f'event {number}' for number in range(40))}"
    accepted(shop.post("/v1/rewards", {"events": before or {"click": 1}}))
