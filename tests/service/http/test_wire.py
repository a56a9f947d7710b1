"""HTTP on the wire: heads, bodies, pipelines and slow clients, each with its limit."""

import asyncio
import itertools
import json
import socket
import sys
from pathlib import Path

import pytest
from in_process import Service, run
from live import Live

from albatross.service.http.wire import connection as connection_module
from albatross.service.http.wire import receiver as receiver_module
from albatross.service.http.wire.connection import Connection
from albatross.service.http.wire.receiver import MAX_HEAD
from albatross.service.http.wire.refusals import MAX_BODY

HEAD = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\n"
GOOD = b'{"user": "ann"}'


def head_of(size: int, more: bytes = b"") -> bytes:
    """A request whose head has so many bytes."""
    start = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + more + b"X: "
    return start + b"x" * (size - len(start) - 4) + b"\r\n\r\n"


@pytest.mark.parametrize("pieces", [1, 3, 1000])
@pytest.mark.parametrize("before", [0, 1], ids=["first", "second"])
def test_a_head_has_64_kib_and_not_a_byte_more(tmp_path: Path, pieces: int, before: int) -> None:
    async def play(service: Service) -> None:
        for size, status in ((MAX_HEAD, 200), (MAX_HEAD + 1, 431), (70_000, 431)):
            talk = await service.talk()
            for _ in range(before):
                talk.get("/healthz")
                assert await talk.status() == 200
            data = head_of(size)
            step = -(-len(data) // pieces)
            for start in range(0, len(data), step):
                talk.say(data[start : start + step])
                await asyncio.sleep(0)
            assert await talk.status() == status, size
            if status == 431:
                assert await talk.ended() == b""
            talk.close()

    run(tmp_path, play)


def test_a_long_head_right_behind_a_body_is_refused_too(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.say(HEAD + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD + head_of(70_000))
        assert await talk.status() == 200
        assert await talk.status() == 431

    run(tmp_path, play)


def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        users = [f"u{number}" for number in range(50)]
        for user in users:
            talk.post("/v1/recommend", json.dumps({"user": user}).encode())
            talk.get("/healthz")
        for user in users:
            assert json.loads((await talk.hear())[2])["user"] == user
            assert await talk.status() == 200
        talk.close()

    run(tmp_path, play)


def test_a_client_that_sends_ahead_is_not_read_until_it_is_answered(tmp_path: Path) -> None:
    """A thousand requests at once do not become a thousand questions at once."""

    async def play(service: Service) -> None:
        service.engine.held = []
        talk = await service.talk()
        for _ in range(1000):
            talk.post("/v1/recommend", GOOD + b" " * 2000)
        while not service.engine.held:
            await asyncio.sleep(0)
        await service.settled()
        assert len(service.engine.asked) == 1
        assert service.crowd.bytes < 10_000
        service.engine.let_go()
        for _ in range(1000):
            assert await talk.status() == 200
        talk.close()

    run(tmp_path, play)


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/nowhere", 404)])
def test_a_client_that_sends_ahead_leaves_others_their_turn(tmp_path: Path, path: str, status: int) -> None:
    """Counted in turns of the event loop."""

    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.say(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 2_000)
        meters, answered = service.application.metrics.meters.values(), [0]
        while answered[-1] < 2_000:
            await asyncio.sleep(0)
            answered.append(sum(count for meter in meters for count in meter.statuses.values()))
        assert max(after - before for before, after in itertools.pairwise(answered)) <= 2 * connection_module.MOST_AT_ONCE
        for _ in range(2_000):
            assert await talk.status() == status
        talk.close()

    run(tmp_path, play)


def test_who_does_not_read_the_answers_is_not_answered_more(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        talk._reader._transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(2_000):
            talk.get("/schema")
        while not service.crowd.unread:
            await asyncio.sleep(0)
        await service.settled()
        answered = sum(service.application.metrics.meters["/schema"].statuses.values())
        assert answered < 1_000
        (member,) = service.crowd.unread
        service.crowd.unread[member] = 0.0
        service.crowd.sweep()
        await service.settled()
        assert not service.crowd.members

    run(tmp_path, play)


def test_chunked_bodies_absolute_addresses_and_the_wish_to_close(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.say(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + GOOD[:5] + b"\r\na\r\n" + GOOD[5:] + b"\r\n0\r\nOrigin: evil\r\n\r\n")
        assert await talk.status() == 200
        talk.say(b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await talk.status() == 200
        talk.get("/healthz?verbose=1")
        assert await talk.status() == 200
        talk.get("/healthz", "Connection: close\r\n")
        talk.get("/healthz")
        status, headers, _ = await talk.hear()
        assert (status, headers["connection"]) == (200, "close")
        assert await talk.ended() == b""
        old = await service.talk()
        old.say(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        assert (await old.hear())[1]["connection"] == "close"
        assert await old.ended() == b""

    run(tmp_path, play)


def test_a_client_that_waits_for_leave_to_send_gets_it_or_a_refusal(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.say(HEAD + b"Content-Length: 15\r\nExpect: 100-continue\r\n\r\n")
        assert await talk.line() == b"HTTP/1.1 100 Continue\r\n"
        assert await talk.line() == b"\r\n"
        talk.say(GOOD)
        assert await talk.status() == 200
        talk.say(HEAD + b"Content-Length: 2000000\r\nExpect: 100-continue\r\n\r\n")
        status, headers, _ = await talk.hear()
        assert (status, headers["connection"]) == (413, "close")

    run(tmp_path, play)


def test_a_client_of_http_1_0_gets_one_answer(tmp_path: Path) -> None:
    """It does not know of leave to send, and would take it for the answer."""

    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.say(b"POST /v1/recommend HTTP/1.0\r\nHost: localhost\r\nContent-Length: 15\r\nExpect: 100-continue\r\n\r\n")
        await service.settled()
        talk.say(GOOD)
        assert await talk.status() == 200
        assert await talk.ended() == b""

    run(tmp_path, play)


@pytest.mark.parametrize("announced", [True, False])
def test_too_large_a_body_is_refused_and_the_next_request_is_answered(tmp_path: Path, announced: bool) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        body = b" " * (MAX_BODY + 1)
        if announced:
            talk.post("/v1/recommend", body)
        else:
            talk.say(HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
        assert await talk.code() == "too-large"
        talk.post("/v1/recommend", GOOD)
        assert await talk.status() == 200
        assert service.crowd.bytes == 0

    run(tmp_path, play)


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "HEAD", "PUT", "DELETE", "PATCH", "CONNECT"])
def test_another_method_is_refused_and_named(tmp_path: Path, method: str) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        for path, allowed in (("/v1/version", "GET"), ("/v1/recommend", "POST")):
            if method == "CONNECT":
                path = "localhost:80"
            talk.say(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = (await talk._reader.readuntil(b"\r\n\r\n")).decode()
            if method == "CONNECT":
                assert head.startswith("HTTP/1.1 404 ")
                return
            assert head.startswith("HTTP/1.1 405 ")
            assert f"allow: {allowed}\r\n" in head
            if method != "HEAD":
                length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
                assert json.loads(await talk._reader.readexactly(length))["code"] == "method-not-allowed"
        talk.get("/healthz")
        assert await talk.status() == 200

    run(tmp_path, play)


def test_an_upgrade_is_an_answer_and_the_end(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.say(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05hello")
        assert await talk.status() == 200
        assert await talk.ended() == b""

    run(tmp_path, play)


@pytest.mark.parametrize("size", [1, 7, 600, 10**6])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_that_asks_for_another_protocol_keeps_its_body(
    tmp_path: Path, size: int, chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java's client asks for HTTP/2 with each request on a new connection."""
    unforeseen: list[BaseException | None] = []
    monkeypatch.setattr(receiver_module, "unforeseen", unforeseen.append)
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
    body = b'{"user": "ann"}' + b" " * 1000
    plain, coded = b"Content-Length: %d\r\n\r\n%b" % (len(body), body), b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
    data = HEAD + wish + (coded % (len(body), body) if chunked else plain)

    async def play(service: Service) -> None:
        connection, wire = connect(service)
        for start in range(0, len(data), size):
            connection.data_received(data[start : start + size])
        await service.settled()
        assert wire.sent.count(b"HTTP/1.1 200 ") == 1
        assert wire.sent.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in wire.sent
        connection.connection_lost(None)

        connection, behind = connect(service)
        connection.data_received(data + data)  # it is the last request, whatever comes behind it
        await service.settled()
        assert behind.sent == wire.sent
        connection.connection_lost(None)

        connection, wire = connect(service)
        connection.data_received(HEAD + wish + b"Transfer-Encoding: chunked\r\n\r\nno chunk")
        await service.settled()
        assert wire.sent.startswith(b"HTTP/1.1 400 ")
        connection.connection_lost(None)

    run(tmp_path, play)
    assert not unforeseen


def test_garbage_behind_a_request_does_not_take_its_answer(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        service.engine.held = []
        talk = await service.talk()
        talk.post("/v1/recommend", GOOD)
        talk.say(b"\x00\x01\x02\r\n\r\n")
        while not service.engine.held:
            await asyncio.sleep(0)
        service.engine.let_go()
        assert await talk.status() == 200
        assert await talk.ended() == b""
        talk = await service.talk()
        talk.say(HEAD + b"Transfer-Encoding: chunked\r\n\r\nnonsense")
        assert await talk.code() == "not-json"
        assert await talk.ended() == b""

    run(tmp_path, play)


class Wire(asyncio.Transport):
    """What a connection would send, where a test decides how the bytes come and when they go."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.paused = self.closed = self.eof = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.eof = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


def connect(service: Service) -> tuple[Connection, Wire]:
    connection, wire = Connection(service.application, service.crowd), Wire()
    connection.connection_made(wire)
    return connection, wire


@pytest.mark.parametrize("size", [48 * 1024 - 1, 48 * 1024 + 1, 56 * 1024, 59_000, MAX_HEAD - 1, MAX_HEAD])
def test_it_does_not_matter_where_a_stream_is_cut(tmp_path: Path, size: int) -> None:
    body = b"GET /v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"\r\n" * 3_000
    stream = head_of(size, b"Content-Length: %d\r\n" % len(body)) + body + b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    cuts = (0, 1, 30, 511, 512, 16_383, 16_384, 49_151, 49_152, 49_153, size - 4, size - 1, size, size + 1, size + 40, size + len(body))

    async def play(service: Service) -> None:
        answers = set()
        for cut in cuts:
            connection, wire = connect(service)
            for part in (stream[:cut], stream[cut:]):
                if part:
                    connection.data_received(part)
            await service.settled()
            answers.add(wire.sent)
            connection.connection_lost(None)
        (answer,) = answers
        assert answer.count(b"HTTP/1.1 200 ") == answer.count(b"HTTP/1.1 ") == 2
        assert b'"ready":true' in answer

    run(tmp_path, play)


SAID = b"POST /v1/recommend HTTP/1.1\r\nContent-Length: %b\r\nX: 1\r\nHost: localhost\r\n\r\n%b"


@pytest.mark.parametrize(
    "said",
    [
        SAID % (b"15", GOOD),
        SAID % (b"16", GOOD + b" "),
        SAID % (b"015", GOOD),
        SAID % (b"15", GOOD) + SAID % (b"15", GOOD),
        SAID % (b"16", GOOD),
        SAID % (b"14", GOOD),
        SAID % (b"0", b""),
        SAID % (b"", GOOD),
        SAID % (b"+15", GOOD),
        SAID % (b"15", b"[" * 15),
        SAID % (b"1000000000", GOOD),
        (SAID % (b"15", GOOD)).replace(b"localhost", b"shop.test"),
        (SAID % (b"15", GOOD)).replace(b"X: 1", b"X: 2"),
        (SAID % (b"15", GOOD)).replace(b"X: 1", b"Connection: close"),
        (SAID % (b"15", GOOD)).replace(b"X: 1", b"Content-Length: 15"),
        (SAID % (b"15", GOOD)).replace(b"recommend", b"version"),
        (SAID % (b"15", GOOD)).replace(b"POST", b"GET"),
        b"\r\n" + SAID % (b"15", GOOD),
    ],
)
def test_a_head_that_was_said_before_is_understood_as_if_it_were_new(tmp_path: Path, said: bytes) -> None:
    async def play(service: Service) -> None:
        answers = []
        for before in (0, 1, 3):
            connection, wire = connect(service)
            for _ in range(before):
                connection.data_received(SAID % (b"15", GOOD))
                await service.settled()
            wire.sent = b""
            connection.data_received(said)
            await service.settled()
            connection.eof_received()
            await service.settled()
            answers.append((wire.sent, wire.closed, wire.eof))
            connection.connection_lost(None)
        assert answers[0] == answers[1] == answers[2]

    run(tmp_path, play)


def test_the_end_of_a_long_head_is_not_a_request_of_its_own(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        connection, wire = connect(service)
        connection.data_received(b"GET /healthz HTTP/1.1\r\nX-A: " + b"a" * 59_000)
        connection.data_received(b"GET /v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"\r\n" * 4_000)
        await service.settled()
        assert wire.sent.count(b"HTTP/1.1 ") == 1
        connection.connection_lost(None)

    run(tmp_path, play)


@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        (b"0\r\nX: ", b"a" * 1_000),
        (b"0\r\n", b"X: a\r\n" * 100),
        (b"1;x=", b"a" * 1_000),
        (b"1\r\na\r\n", b"1;x=%b\r\na\r\n" % (b"a" * 1_000)),
        (b"8000\r\n" + b" " * 0x8000 + b"\r\n0\r\nX: ", b"a" * 1_000),
    ],
    ids=["trailer", "trailers", "extension", "extensions", "trailer behind a body"],
)
def test_what_comes_with_a_body_and_has_no_end_is_cut_off(tmp_path: Path, beginning: bytes, more: bytes) -> None:
    async def play(service: Service) -> None:
        connection, wire = connect(service)
        connection.data_received(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + beginning)
        sent = 0
        while not wire.sent:
            assert sent < 2 * MAX_HEAD
            connection.data_received(more)
            sent += len(more)
        assert wire.sent.startswith(b"HTTP/1.1 400 ")
        assert wire.eof or wire.closed
        connection.connection_lost(None)

    run(tmp_path, play)


def test_a_body_may_come_byte_by_byte_and_takes_no_more_memory_than_in_one_piece(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        body = b'{"user": "ann"%b}' % (b" " * 200_000)
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        talk.say(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
        while service.crowd.bytes < len(body):
            await asyncio.sleep(0)
        (exchange,) = service.crowd.bodies.values()
        assert sys.getsizeof(exchange.body) < 2 * len(body)
        talk.say(b"0\r\nX: a short trailer\r\n\r\n")
        assert await talk.status() == 200

    run(tmp_path, play)


LONG = GOOD + b" " * 600


@pytest.mark.parametrize(
    "first",
    [
        b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD,
        b"Content-Length: %d\r\n\r\n" % len(LONG) + LONG,
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(LONG), LONG),
    ],
    ids=["short", "long", "chunked"],
)
def test_few_requests_are_taken_before_the_first_is_answered(tmp_path: Path, first: bytes) -> None:
    async def play(service: Service) -> None:
        service.engine.held = []
        connection, wire = connect(service)
        connection.data_received(HEAD + first + b"GET / HTTP/1.1\r\n\r\n" * 5_000)
        await service.settled()
        assert wire.paused
        assert len(connection._receiver.pipeline) < 32
        service.engine.let_go()
        await service.settled()
        while connection._rest:
            await service.settled()
        assert wire.sent.count(b"HTTP/1.1 403 ") == 5_000
        connection.connection_lost(None)

    run(tmp_path, play)


def test_who_stops_sending_is_answered(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        for half in (b"", b"GET /healthz HTT"):
            service.engine.held = []
            talk = await service.talk()
            for _ in range(3):
                talk.post("/v1/recommend", GOOD)
            talk.say(half)
            talk._writer.write_eof()
            while not service.engine.held:
                await asyncio.sleep(0)
            await service.settled()
            service.engine.let_go()
            for _ in range(3):
                assert await talk.status() == 200
            assert await talk.ended() == b""
        talk = await service.talk()
        talk.say(HEAD + b"Content-Length: 15\r\n\r\n{")
        talk._writer.write_eof()
        assert await talk.ended() == b""

    run(tmp_path, play)


def test_who_stops_sending_is_answered_by_a_real_server(shop: Live) -> None:
    with socket.create_connection(("127.0.0.1", shop.port)) as client:
        client.sendall(b"GET /v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        assert client.makefile("rb").read().startswith(b"HTTP/1.1 200 ")


def test_a_connection_that_ends_keeps_its_time(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        connection, wire = connect(service)
        connection.pause_writing()
        connection.end()
        assert wire.closed
        until = service.crowd.unread[connection]
        connection.resume_writing()
        connection.pause_writing()
        assert service.crowd.unread[connection] == until
        connection.connection_lost(None)

    run(tmp_path, play)


def test_what_came_before_garbage_is_answered_also_to_one_who_reads_late(tmp_path: Path) -> None:
    class Full(Wire):
        def write(self, data: bytes | bytearray | memoryview) -> None:
            super().write(data)
            owners[0].pause_writing()

    async def play(service: Service) -> None:
        connection, wire = Connection(service.application, service.crowd), Full()
        owners.append(connection)
        connection.connection_made(wire)
        connection.data_received(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3 + b"\x00\r\n\r\n")
        for answers in (1, 2, 3):
            assert wire.sent.count(b"HTTP/1.1 200 ") == wire.sent.count(b"HTTP/1.1 ") == answers
            assert (wire.closed or wire.eof) == (answers == 3)
            connection.resume_writing()
        assert wire.sent.count(b"connection: close") == 1
        connection.connection_lost(None)

    owners: list[Connection] = []
    run(tmp_path, play)


@pytest.mark.parametrize(
    "end", [b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"\x00"], ids=["last", "garbage"]
)
def test_who_was_told_to_come_later_is_answered_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: bytes) -> None:
    """A pause after a refusal is not the end, also where nothing more is heard."""
    monkeypatch.setattr(connection_module, "SHED_SECONDS", 0.0)

    async def play(service: Service) -> None:
        service.engine.congested = True
        talk = await service.talk()
        talk.say(HEAD + b"Content-Length: 15\r\n\r\n" + GOOD + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + end)
        assert await talk.status() == 429
        assert await talk.status() == 200
        assert (await talk.ended()).count(b"HTTP/1.1 200 ") == end.startswith(b"GET")

    run(tmp_path, play)
