"""HTTP on the wire: heads, bodies, pipelines and slow clients, each with its limit."""

import asyncio
import json
from pathlib import Path

import pytest
from in_process import Service, run

from albatross.service.http.connection import MAX_BODY
from albatross.service.http.receiver import MAX_HEAD

HEAD = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\n"
GOOD = b'{"user": "ann"}'


def head_of(size: int) -> bytes:
    """A request whose head has so many bytes."""
    start = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "
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
