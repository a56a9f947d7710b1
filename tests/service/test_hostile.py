"""What the network may send: the answer is a problem document, never a crash, and never a 5xx."""

import asyncio
import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live import Live

from albatross.service.messages import BadValue
from albatross.service.strict_json import MAX_DEPTH, NotJson, parse
from benchmarks.hostile import POSTS, send_storm

pytestmark = pytest.mark.xdist_group("service-http")
relaxed = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))  # a busy machine is no finding

documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def check(live: Live, path: str, body: bytes) -> int:
    reply = live.post(path, body)
    assert reply.status in (200, 400, 404, 413, 422), (path, body, reply)
    if reply.status != 200:
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json["status"] == reply.status
    return reply.status


@relaxed
@given(path=st.sampled_from(POSTS), body=st.binary(max_size=200))
def test_any_bytes(shop: Live, path: str, body: bytes) -> None:
    check(shop, path, body)


@relaxed
@given(path=st.sampled_from(POSTS), document=documents)
def test_any_document(shop: Live, path: str, document: Any) -> None:
    check(shop, path, json.dumps(document).encode())


@relaxed
@given(
    path=st.sampled_from(POSTS),
    fields=st.fixed_dictionaries(
        {},
        optional={
            name: documents | st.text(max_size=300) | st.sampled_from(["\ud800", "\x00", "", "x" * 257, "ß" * 129, "\x7f", "\u0085"])
            for name in ("user", "item", "event_id", "rating", "decision_id", "n", "candidates", "exclude", "exclude_seen", "request_id")
        },
    ),
)
def test_right_names_with_any_value(shop: Live, path: str, fields: dict[str, Any]) -> None:
    check(shop, path, json.dumps(fields).encode())


@relaxed
@given(data=st.data())
def test_a_good_request_with_a_byte_changed(shop: Live, data: st.DataObject) -> None:
    path, good = data.draw(
        st.sampled_from(
            [
                ("/v1/recommend", b'{"user": "ann", "n": 1, "candidates": ["tea"], "exclude_seen": "none"}'),
                ("/v1/feedback", b'{"event_id": "changed", "user": "ann", "item": "tea", "rating": 4.5}'),
            ]
        )
    )
    position = data.draw(st.integers(0, len(good) - 1))
    check(shop, path, good[:position] + data.draw(st.binary(max_size=2)) + good[position + 1 :])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"\xef\xbb\xbf{}", 400),
        (b'{"event_id": "a", "event_id": "b", "user": "u", "item": "i", "rating": 3}', 400),
        (b"[" * 100_000, 400),
        (b'{"a": ' * 20 + b"1" + b"}" * 20, 400),
        (b"null", 422),
        (b"[]", 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": NaN}', 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": Infinity}', 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": -Infinity}', 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": 1e999}', 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": ' + b"9" * 5000 + b"}", 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": "4"}', 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": true}', 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": 5.0000001}', 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": 0}', 422),
        (b'{"event_id": "n", "user": "", "item": "i", "rating": 3}', 422),
        (b'{"event_id": "n", "user": "u", "item": "' + b"x" * 257 + b'", "rating": 3}', 422),
        (b'{"event_id": "n", "user": "u\\u0000", "item": "i", "rating": 3}', 422),
        (b'{"event_id": "n", "user": "\\ud800", "item": "i", "rating": 3}', 422),
        (b'{"event_id": "n", "user": "u", "item": "i", "rating": 3, "weight": 2}', 422),
        (b'{"event_id": "n", "user": "u", "rating": 3}', 422),
        (b'{"event_id": "n", "rating": 3}', 422),
        (b'{"event_id": "' + b"x" * 2**20 + b'"}', 413),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else None,
)
def test_what_is_refused_is_refused_alike_with_and_without_the_framework(shop: Live, body: bytes, status: int) -> None:
    before = shop.get("/v1/version").json["seq"]
    assert check(shop, "/v1/feedback", body) == status
    # With a stroke at the end, the framework answers, and says the same.
    assert shop.post("/v1/feedback", body).json == shop.post("/v1/feedback/", body).json
    assert shop.get("/v1/version").json["seq"] == before


def test_what_is_accepted_is_answered_alike_with_and_without_the_framework(shop: Live) -> None:
    question = {"user": "alike", "candidates": ["x", "y"], "explain": True, "request_id": "alike"}
    assert shop.post("/v1/recommend", question).json == shop.post("/v1/recommend/", question).json
    event = {"event_id": "alike", "user": "alike", "item": "x", "rating": 3}
    assert shop.post("/v1/feedback", event).json["seq"] == shop.post("/v1/feedback/", event).json["seq"]


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(documents)
def test_reading_is_the_inverse_of_writing(document: Any) -> None:
    def finite(value: Any) -> bool:
        if isinstance(value, float):
            return math.isfinite(value)
        if isinstance(value, list | dict):
            return all(finite(inner) for inner in (value.values() if isinstance(value, dict) else value))
        return not (isinstance(value, int) and abs(value) >= 10**308)

    def depth(value: Any) -> int:
        if isinstance(value, list | dict):
            return 1 + max((depth(inner) for inner in (value.values() if isinstance(value, dict) else value)), default=0)
        return 0

    body = json.dumps(document).encode()
    if finite(document) and depth(document) <= MAX_DEPTH:
        assert parse(body) == document
    else:
        with pytest.raises((NotJson, BadValue)):
            parse(body)


def test_brackets_in_texts_are_no_depth() -> None:
    text = "[" * 100 + '\\"' + "{" * 100
    assert parse(json.dumps({"user": text}).encode()) == {"user": text}


def test_a_storm_of_almost_right_bodies(shop: Live) -> None:
    """Some here; `make chaos` sends ten thousand."""
    storm = asyncio.run(send_storm(shop.port, 300))
    assert sum(storm.values()) == 300
    assert all(status in (200, 400, 404, 422) for status in storm), storm
    assert len(storm) >= 3  # all sorts came


def speak(shop: Live, *parts: bytes) -> tuple[bytes, bytes]:
    """Send bytes as they are; head and body of the answer, which ends the connection."""

    async def converse() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", shop.port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
        except ConnectionError:
            writer.close()  # it has heard enough
        answer = b""
        try:
            while chunk := await reader.read(2**16):
                answer += chunk
        except ConnectionError:
            pass
        writer.close()
        return answer

    head, _, body = asyncio.run(converse()).partition(b"\r\n\r\n")
    return head, body


@pytest.mark.parametrize(
    "noise",
    [
        b"hello\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/recommend HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ],
    ids=["words", "TLS", "version", "length"],
)
def test_what_is_not_http_gets_a_problem_document(shop: Live, noise: bytes) -> None:
    head, body = speak(shop, noise)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in head
    assert json.loads(body)["code"] == "not-http"


@pytest.mark.parametrize("beginning", [b"GET /", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "], ids=["path", "header"])
def test_a_head_without_end_is_cut_off(shop: Live, beginning: bytes) -> None:
    head, _ = speak(shop, beginning, b"x" * 70_000)
    assert head.startswith(b"HTTP/1.1 431 ")
    assert shop.get("/healthz").status == 200


def test_many_requests_on_one_connection_are_no_long_head(shop: Live) -> None:
    for _ in range(30):
        assert shop.get("/healthz", {"X-Long": "x" * 5_000}).status == 200
        assert shop.post("/v1/recommend", {"user": "long", "candidates": ["x" * 200] * 100 + ["y"]}).status in (200, 422)
