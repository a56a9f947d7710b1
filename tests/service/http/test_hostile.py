"""What the network may send: the answer is a problem document, never a crash, and never a 5xx."""

import asyncio
import contextlib
import json
import math
import sys
from collections.abc import Callable
from io import StringIO
from types import FrameType
from typing import Any

import pytest
import structlog
from faults.hostile import POSTS, send_storm
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from live import Live

from albatross.service.api.answers import Refusal
from albatross.service.api.errors import BadValue, NotJson
from albatross.service.api.requests import Feedback, Recommend, UpsertItem
from albatross.service.http import bodies, strict_json
from albatross.service.http.bodies import read_line
from albatross.service.http.logs import configure_log
from albatross.service.http.strict_json import parse

pytestmark = pytest.mark.xdist_group("service-http")
relaxed = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))  # a busy machine is no finding

FIELDS = ("user", "n", "candidates", "where", "quotas", "fresh", "explain", "event_id", "rating", "item", "attribute", "is", "from", "most")
TEXTS = ('""', '"ann"', '"user"', '"a:b"', '"{"', '"-0"', '"\\u00e9"', '"\\ud800"', '"\u00e9"', '"\x7f"', '"\x01"', '"a\\"b"', '"rated"')
NUMBERS = (
    "0",
    "-0",
    "-0.0",
    "-0e1",
    "1",
    "2.0",
    "3.5",
    "1e0",
    "1E400",
    "-1",
    "007",
    "1.",
    "NaN",
    "Infinity",
    "9007199254740993",
    "1" + "0" * 400,
)
spaces = st.sampled_from(("", " ", "\t", "\r\n"))
objects = st.recursive(
    st.sampled_from((*TEXTS, *NUMBERS, "true", "null")),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]")
        | st.lists(st.tuples(st.sampled_from(FIELDS), spaces, spaces, inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f'{before}"{name}"{behind}:{before}{value}' for name, before, behind, value in pairs) + "}"
        )
    ),
    max_leaves=8,
)
"""Requests, nearly: what the two readers of JSON could take for different things."""

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
        (b"[" * 10_000, 400),
        (b"[" * 100_000, 422),
        (b'{"a": ' * 1_500 + b"1" + b"}" * 1_500, 400),
        (b'{"a": ' * 100_000 + b"1" + b"}" * 100_000, 422),
        (b'{"a": ' * 20 + b"1" + b"}" * 20, 422),
        (b'[[[[[[[[["' + b'\\"' * 30_000, 422),
        (b"{" + b", ".join(b'"k%d": 1' % number for number in range(20_000)) + b"}", 422),
        (b"{" + b", ".join(b'"k%d": 1' % number for number in range(20_000)) + b', "k19999": 1}', 422),
        (b"{" + b", ".join(b'"k%d": 1' % number for number in range(900)) + b', "k899": 1}', 400),
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
def test_what_is_refused_changes_nothing(shop: Live, body: bytes, status: int) -> None:
    before = shop.get("/v1/version").json["seq"]
    assert check(shop, "/v1/feedback", body) == status
    assert len(shop.post("/v1/feedback", body).body) < 500
    assert shop.get("/v1/version").json["seq"] == before


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(documents)
def test_reading_is_the_inverse_of_writing(document: Any) -> None:
    def finite(value: Any) -> bool:
        if isinstance(value, float):
            return math.isfinite(value)
        if isinstance(value, list | dict):
            return all(finite(inner) for inner in (value.values() if isinstance(value, dict) else value))
        return True

    body = json.dumps(document).encode()
    if finite(document):
        assert parse(body) == document
    else:
        with pytest.raises((NotJson, BadValue)):
            parse(body)


def test_a_nest_that_python_can_read_is_a_bad_value_and_a_deeper_one_is_not_json() -> None:
    assert parse(b"[" * 100 + b"]" * 100)
    with pytest.raises(NotJson, match="nested too deep"):
        parse(b"[" * 100_000 + b"]" * 100_000)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a": ', b"}")], ids=["lists", "objects"])
def test_there_is_no_depth_at_which_a_document_is_anything_but_read_or_refused(opening: bytes, closing: bytes) -> None:
    """Reading, and looking for halves of characters, do not get equally deep."""
    refusals = 0
    for depth in range(0, 1_100, 3):
        document = opening * depth + b'"\\u0061"' + closing * depth
        try:
            parse(document)
        except NotJson:
            refusals += 1
        assert isinstance(read_line(document), Refusal)
    assert refusals


def test_a_line_that_cannot_be_read_does_not_take_the_others_with_it(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    stream = StringIO()
    configure_log("text", stream)
    request.addfinalizer(structlog.reset_defaults)

    def fail(body: bytes, kind: type[Any]) -> Any:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(bodies, "read_as", fail)
    refusal = read_line(b"{}")
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code) == (500, "failed")
    assert "secret" not in refusal.detail + stream.getvalue()


def test_brackets_in_texts_are_no_depth() -> None:
    text = "[" * 100 + '\\"' + "{" * 100
    assert parse(json.dumps({"user": text}).encode()) == {"user": text}


@pytest.mark.parametrize(
    "attack",
    [
        lambda size: b'[[[[[[[[["' + b'\\"' * size,
        lambda size: b"{" + b", ".join(b'"k%d": 1' % number for number in range(size)) + b', "k0": 1}',
        lambda size: b"[" + b'"\\u00e9", ' * size + b"0]",
        lambda size: b"[" + b"{}," * size + b"{}]",
    ],
    ids=["quotes", "keys", "escapes", "objects"],
)
def test_twice_as_long_is_twice_as_much_work(attack: Callable[[int], bytes]) -> None:
    """Counted in lines of our own that are run: whatever is done once for each pair of things would show."""

    def work(size: int) -> int:
        body, lines = attack(size), 0

        def count(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal lines
            lines += event == "line" and frame.f_code.co_filename == strict_json.__file__
            return count

        before = sys.gettrace()
        sys.settrace(count)
        try:
            with contextlib.suppress(NotJson, BadValue):
                parse(body)
        finally:
            sys.settrace(before)
        return lines

    assert work(2_000) < 2.5 * work(1_000) + 50


@settings(max_examples=600, deadline=None)
@example("null", "1", '"user": "ann", "user": "bob", ')
@example("1", "1", '"event_id": "e", "user": "ann", "user": "bob", "item": "tea", ')
@example("-0.0", "2.0", '"event_id": "e", "user":"ann","item":"tea",')
@given(objects, objects, st.sampled_from(("", '"user": "ann", ', '"event_id": "e", "user":"ann","item":"tea",')))
def test_the_quick_reader_takes_nothing_for_anything_else(value: str, other: str, start: str) -> None:
    def told(read: Callable[[bytes, Any], Any], body: bytes, kind: Any) -> str:
        try:
            return repr(read(body, kind))
        except (NotJson, BadValue) as error:
            return f"{type(error)} {error}"

    for kind, name in ((Recommend, "where"), (Feedback, "rating")):
        for text in (value, "{" + start + f'"{name}":{value}' + "}", "{" + start + f'"{name}": {value}, "n": {other}' + "}"):
            body = text.encode("utf-8", "surrogatepass")
            assert told(strict_json.read_as, body, kind) == told(strict_json.read_closely, body, kind)


@pytest.mark.parametrize(
    "value",
    [b"[]", b"{}", b"[" * 900 + b"]" * 900, b"1.5", b"null", b'{"a": 1}'],
    ids=["lists", "objects", "nests", "numbers", "nulls", "pairs"],
)
def test_a_long_document_is_refused_at_the_first_value_that_no_request_has(value: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    monkeypatch.setattr(strict_json, "parse", read.append)
    for start in (b"[", b'{"user": "ann", "candidates": ['):
        body = start + b",".join([value] * (2**20 // (len(value) + 1) - 50)) + (b"]" if start == b"[" else b"]}")
        with pytest.raises(BadValue):
            strict_json.read_as(body, Recommend)
    assert not read


@pytest.mark.parametrize(
    "body",
    [
        b"{" + b",".join(b'"%d":1' % number for number in range(80_000)) + b"}",
        b'{"item": "tea", "attributes": {' + b",".join(b'"%d":["a"]' % number for number in range(60_000)) + b"}}",
        b'{"user": "ann", "quotas": [' + b",".join([b'{"attribute":"a","most":1}'] * 35_000) + b"]}",
    ],
    ids=["fields", "attributes", "quotas"],
)
def test_a_long_document_of_many_members_is_refused_before_it_is_read(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it would hold up everybody for a tenth of a second."""
    monkeypatch.delattr(strict_json, "_SHAPE")
    monkeypatch.delattr(strict_json, "parse")
    for kind in (Recommend, UpsertItem):
        with pytest.raises(BadValue, match="members"):
            strict_json.read_as(body, kind)


@pytest.mark.parametrize("item", ["a:b", '"', "\\", '\\":{":', ":" * 20], ids=["colon", "quote", "backslash", "all", "many"])
def test_colons_in_texts_are_no_members(item: str) -> None:
    ids = [f"{item}{number}" for number in range(10_000)]
    assert strict_json.read_as(json.dumps({"user": "ann", "candidates": ids}).encode(), Recommend).candidates == ids


def test_a_long_document_may_be_right() -> None:
    ids = [f"item, [{number}] {{}} \u00e9" for number in range(10_000)]
    question = {"user": "ann", "n": 3, "candidates": ids, "exclude": ids[:5], "exclude_seen": "rated", "explain": True, "request_id": None}
    for ascii_only in (True, False):
        assert strict_json.read_as(json.dumps(question, ensure_ascii=ascii_only).encode(), Recommend).candidates == ids
    with pytest.raises(NotJson):
        strict_json.read_as(json.dumps(question).encode()[:-1], Recommend)
    with pytest.raises(NotJson, match="more than once"):
        strict_json.read_as(json.dumps(question).encode()[:-1] + b', "n": 4}', Recommend)


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "//", "\xff\xfe", "http://localhost:99999999", "x" * 5_000])
def test_an_origin_that_is_none_is_refused(shop: Live, origin: str) -> None:
    reply = shop.get("/healthz", {"Origin": origin})
    assert (reply.status, reply.json["code"]) == (403, "forbidden")
    assert len(reply.body) < 500


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
