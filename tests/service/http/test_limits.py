"""Limits of a client: places, memory, time, streams. A client beyond them loses its connection, and others notice nothing."""

import asyncio
import json
import socket
import struct
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import structlog
from in_process import Service, Talk, run

from albatross.service.api.errors import BadValue, DiskFull, NotReady, Overloaded
from albatross.service.api.requests import AskSeries, Feedback, FeedbackBatch, Request
from albatross.service.api.values import MOST_EVENTS
from albatross.service.http import bodies, news
from albatross.service.http.access.keys import Keys
from albatross.service.http.access.turns import MOST_BATCHES, MOST_WAITING_OF_KEY
from albatross.service.http.bodies import PORTION, SLICE, SLICE_BYTES, answer_lines
from albatross.service.http.logs import configure_log
from albatross.service.http.news import MOST_STREAMS
from albatross.service.http.wire.connection import Connection
from albatross.service.http.wire.crowd import BODY_RATE, BODY_SECONDS, HEAD_SECONDS
from albatross.service.http.wire.exchange import Exchange

GOOD = b'{"user": "ann"}'
ANNOUNCED = b"POST /v1/feedback HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n"


def later(service: Service, seconds: float) -> None:
    """Let the sweep think that so much time is over."""
    crowd_ = service.crowd
    for times in (crowd_.heads, crowd_.unread):
        for member in times:
            times[member] -= seconds
    for exchange in crowd_.bodies.values():
        exchange.began -= seconds
    crowd_.sweep()


async def answered(service: Service) -> int:
    talk = await service.talk()
    talk.post("/v1/recommend", GOOD)
    return await talk.status()


def test_bodies_that_are_only_announced_disturb_nobody(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        slow = [await service.talk() for _ in range(65)]
        for talk in slow:
            talk.say(ANNOUNCED + b" ")
        while len(service.crowd.bodies) < 65:
            await asyncio.sleep(0)
        assert service.crowd.bytes == 65
        assert await answered(service) == 200
        later(service, BODY_SECONDS + 1)
        for talk in slow:
            assert await talk.code() == "too-slow"
            assert await talk.ended() == b""
        assert service.crowd.bytes == 0
        assert await answered(service) == 200

    run(tmp_path, play)


def test_a_body_may_take_longer_the_more_of_it_has_come(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.say(ANNOUNCED + b" " * (5 * BODY_RATE))
        while service.crowd.bytes < 5 * BODY_RATE:
            await asyncio.sleep(0)
        later(service, BODY_SECONDS + 4)
        assert len(service.crowd.bodies) == 1
        later(service, 2)
        assert await talk.code() == "too-slow"

    run(tmp_path, play)


def test_where_memory_is_short_the_oldest_unfinished_body_gives_way(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        hoarders = [await service.talk() for _ in range(5)]
        for number, talk in enumerate(hoarders):
            talk.say(ANNOUNCED + b" " * 200_000)
            while service.crowd.bytes < min(number + 1, 4) * 200_000:
                await asyncio.sleep(0)
        status, headers, _ = await hoarders[0].hear()
        assert (status, headers["retry-after"]) == (429, "1")
        assert service.crowd.bytes <= 1_000_000
        assert await answered(service) == 200
        assert len(service.crowd.bodies) == 5  # what was refused is still being sent, and not kept

    run(tmp_path, play, most_bytes=900_000)


def test_half_a_head_has_its_time_and_then_an_answer(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        silent, half, idle = [await service.talk() for _ in range(3)]
        half.say(b"GET /healthz HTTP/1.1\r\nHo")
        idle.get("/healthz")
        assert await idle.status() == 200
        while len(service.crowd.heads) < 3:
            await asyncio.sleep(0)
        await service.settled()
        later(service, HEAD_SECONDS - 1)
        half.say(b"st: local")  # a byte now and then does not help
        await service.settled()
        later(service, 2)
        assert await silent.ended() == b""
        assert await half.code() == "too-slow"
        assert await half.ended() == b""
        idle.get("/healthz")
        assert await idle.status() == 200

    run(tmp_path, play)


def test_half_open_connections_lock_nobody_out(tmp_path: Path) -> None:
    """There is room for 20. A hundred that never finish a head come one after the other, and who asks is answered all the same."""

    async def play(service: Service) -> None:
        half: list[Talk] = []
        for _ in range(100):
            half.append(await service.talk())
            half[-1].say(b"GET /healthz HTTP/1.1\r\n")
        for _ in range(5):
            assert await answered(service) == 200
        await service.settled()
        assert len(service.crowd.members) <= 20
        assert await half[0].ended() == b""

    run(tmp_path, play, most=20)


def test_who_asked_last_is_the_last_to_go(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        first, second = await service.talk(), await service.talk()
        for talk in (first, second, first):
            talk.get("/healthz")
            assert await talk.status() == 200
        third = await service.talk()
        third.get("/healthz")
        assert await third.status() == 200
        assert await second.ended() == b""
        first.get("/healthz")
        assert await first.status() == 200

    run(tmp_path, play, most=2)


def test_with_all_places_busy_a_connection_is_refused_and_no_answer_lost(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        service.engine.held = []
        busy = [await service.talk() for _ in range(4)]
        for talk in busy:
            talk.post("/v1/recommend", GOOD)
        while len(service.engine.held) < 4:
            await asyncio.sleep(0)
        one_more = await service.talk()
        assert await one_more.ended() == b""
        service.engine.let_go()
        assert [await talk.status() for talk in busy] == [200] * 4

    run(tmp_path, play, most=4)


def test_a_congested_engine_sheds_before_the_body_is_read(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        service.engine.congested = True
        talk = await service.talk()
        talk.say(ANNOUNCED)  # and not a byte of the body
        status, headers, body = await talk.hear()
        assert (status, headers["retry-after"], json.loads(body)["code"]) == (429, "1", "overloaded")
        assert not service.engine.asked
        assert service.crowd.bytes == 0
        for path in ("/healthz", "/readyz"):
            other = await service.talk()
            other.get(path)
            assert await other.status() == 200

    run(tmp_path, play)


def test_no_more_than_the_places_are_worked_on(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        service.engine.held = []
        talks = [await service.talk() for _ in range(8)]
        for talk in talks:
            talk.post("/v1/recommend", GOOD)
        statuses = [asyncio.ensure_future(talk.status()) for talk in talks]
        while sum(status.done() for status in statuses) < 4:
            await asyncio.sleep(0)
        assert len(service.engine.held) == 4
        service.engine.let_go()
        assert sorted([await status for status in statuses]) == [200] * 4 + [429] * 4
        assert service.application.admission.in_flight == 0

    run(tmp_path, play, places=4)


def test_one_key_gets_half_of_the_places(tmp_path: Path) -> None:
    greedy, modest = (Keys(tmp_path).create(["recommend"]) for _ in range(2))

    async def play(service: Service) -> None:
        service.engine.held = []
        talks = [await service.talk() for _ in range(8)]
        for talk in talks[:7]:
            talk.post("/v1/recommend", GOOD, f"Authorization: Bearer {greedy}\r\n")
        statuses = [asyncio.ensure_future(talk.status()) for talk in talks]
        while sum(status.done() for status in statuses) < 4:
            await asyncio.sleep(0)
        talks[7].post("/v1/recommend", GOOD, f"Authorization: Bearer {modest}\r\n")
        while len(service.engine.held) < 4:
            await asyncio.sleep(0)
        service.engine.let_go()
        assert sorted([await status for status in statuses[:7]]) == [200] * 3 + [429] * 4
        assert await statuses[7] == 200

    run(tmp_path, play, places=6)


async def posted(service: Service, count: int, head: str = "") -> list[asyncio.Task[int]]:
    """The statuses of so many recommendations, once each is answered or held."""
    assert service.engine.held is not None
    before = len(service.engine.held)
    talks = [await service.talk() for _ in range(count)]
    for talk in talks:
        talk.post("/v1/recommend", GOOD, head)
    statuses = [asyncio.create_task(talk.status()) for talk in talks]
    while sum(status.done() for status in statuses) + len(service.engine.held) - before < count:
        await asyncio.sleep(0)
    return statuses


def test_who_waits_for_the_compiler_takes_no_place_of_others(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        service.engine.held = []
        statuses = await posted(service, 4)
        service.engine.withheld = 2
        statuses += await posted(service, 2)
        assert len(service.engine.held) == 6
        (one_more,) = await posted(service, 1)
        assert await one_more == 429
        service.engine.let_go()
        assert [await status for status in statuses] == [200] * 6

    run(tmp_path, play, places=4)


def test_half_of_the_places_of_a_key_is_half_of_what_the_compiler_leaves(tmp_path: Path) -> None:
    greedy, modest = (f"Authorization: Bearer {Keys(tmp_path).create(['recommend'])}\r\n" for _ in range(2))

    async def play(service: Service) -> None:
        service.engine.held = []
        statuses = await posted(service, 2, greedy)
        service.engine.withheld = 2
        statuses += await posted(service, 1, greedy)
        (one_more,) = await posted(service, 1, greedy)
        assert await one_more == 429
        statuses += await posted(service, 3, modest)
        assert len(service.engine.held) == 6
        service.engine.let_go()
        assert [await status for status in statuses] == [200] * 6

    run(tmp_path, play, places=4)


def test_an_answer_that_nobody_waits_for_frees_its_place(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        service.engine.held = []
        talk = await service.talk()
        talk.post("/v1/recommend", GOOD)
        while not service.engine.held:
            await asyncio.sleep(0)
        # Who only stops sending may still listen, so it breaks off.
        talk._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        talk.close()
        while service.crowd.members:
            await asyncio.sleep(0)
        assert service.application.admission.in_flight == 0
        assert service.crowd.bytes == 0
        service.engine.let_go()
        assert await answered(service) == 200

    run(tmp_path, play)


def test_32_streams_and_not_one_more(tmp_path: Path) -> None:
    """All ask before any is answered, which is when one too many could slip in."""

    async def play(service: Service) -> None:
        service.engine.held = []
        talks = [await service.talk() for _ in range(MOST_STREAMS + 7)]
        for talk in talks:
            talk.get("/v1/stream")
        while len(service.engine.held) < MOST_STREAMS:
            await asyncio.sleep(0)
        await service.settled()
        service.engine.let_go()
        heads = [await talk.line() for talk in talks]
        assert sum(b" 200 " in head for head in heads) == MOST_STREAMS
        assert sum(b" 429 " in head for head in heads) == 7
        # One that leaves makes room for another; one that was refused has taken none.
        talks[[b" 200 " in head for head in heads].index(True)].close()
        while len(service.application.news._places) == MOST_STREAMS:
            await asyncio.sleep(0)
        for expected in (b" 200 ", b" 429 "):
            talk = await service.talk()
            talk.get("/v1/stream")
            assert expected in await talk.line()

    run(tmp_path, play, most=200)


def test_a_stream_that_is_refused_takes_no_place(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        service.engine.refuse = lambda _: NotReady("replaying")
        talk = await service.talk()
        for _ in range(2 * MOST_STREAMS):
            talk.get("/v1/stream")
            assert await talk.status() == 503
        assert not service.application.news._places

    run(tmp_path, play)


def test_a_flood_of_lines_gets_a_short_answer(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        talk = await service.talk()
        for body, code in (
            (b"\n" * 2**20, "not-json"),
            (b"x" + b"\n" * (2**20 - 1), "too-large"),
            (b"\n".join([b"x"] * (MOST_EVENTS + 1)), "too-large"),
        ):
            talk.post("/v1/feedback/batch", body)
            assert await talk.code() == code
        assert not service.engine.asked
        body = (b'{"' + b"y" * 90 + b'":1}\n') * MOST_EVENTS
        talk.post("/v1/feedback/batch", body)
        status, _, answer = await talk.hear()
        assert status == 200
        assert len(answer) < 3 * len(body)

    run(tmp_path, play)


def lines_of(count: int) -> bytes:
    return b"".join(b'{"event_id": "e%d", "user": "u", "item": "i", "rating": 3}\n' % number for number in range(count))


def test_a_batch_is_asked_in_slices_and_others_come_between(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        batch, other = await service.talk(), await service.talk()
        service.engine.held = []
        batch.post("/v1/feedback/batch", lines_of(3 * SLICE + 1))
        while not service.engine.held:
            await asyncio.sleep(0)
        other.post("/v1/recommend", GOOD)
        while len(service.engine.held) < 2:
            await asyncio.sleep(0)
        service.engine.let_go()
        assert await other.status() == 200
        status, _, body = await batch.hear()
        assert status == 200
        assert [json.loads(line)["line"] for line in body.splitlines()] == list(range(1, 3 * SLICE + 2))
        sizes = [len(request.events) for request in service.engine.asked if isinstance(request, FeedbackBatch)]
        assert sizes == [SLICE, SLICE, SLICE, 1]

    run(tmp_path, play)


@pytest.mark.parametrize("error", [Overloaded("later"), DiskFull("full"), NotReady("ending")], ids=lambda error: error.code)
def test_a_slice_that_is_refused_says_so_in_its_lines(tmp_path: Path, error: Overloaded | DiskFull | NotReady) -> None:
    async def play(service: Service) -> None:
        def refuse(request: Request[Any]) -> Exception | None:
            return error if sum(isinstance(asked, FeedbackBatch) for asked in service.engine.asked) == 2 else None

        service.engine.refuse = refuse
        talk = await service.talk()
        talk.post("/v1/feedback/batch", lines_of(SLICE) + b"nonsense\n" + lines_of(2 * SLICE))
        status, _, body = await talk.hear()
        assert status == 200
        answers = [json.loads(line) for line in body.splitlines()]
        assert [answer["status"] for answer in answers[:SLICE]] == [200] * SLICE
        assert answers[SLICE]["code"] == "not-json"
        assert {(answer["status"], answer["code"]) for answer in answers[SLICE + 1 : 2 * SLICE]} == {(error.status, error.code)}
        assert {answer["status"] for answer in answers[2 * SLICE :]} == {200}

    run(tmp_path, play)


def test_what_nobody_foresaw_is_a_problem_without_its_words(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    stream = StringIO()
    configure_log("text", stream)
    request.addfinalizer(structlog.reset_defaults)

    async def play(service: Service) -> None:
        service.engine.refuse = lambda _: ZeroDivisionError("the user ann is a secret")
        talk = await service.talk()
        for path, body in (("/v1/recommend", GOOD), ("/v1/feedback/batch", lines_of(1))):
            talk.post(path, body)
            status, _, answer = await talk.hear()
            assert (status, json.loads(answer)["code"]) == (500, "failed")
            assert b"ann" not in answer
        service.engine.refuse = lambda _: BadValue("x" * 10_000)
        talk.post("/v1/recommend", GOOD)
        assert len((await talk.hear())[2]) < 1_200

    run(tmp_path, play)
    printed = stream.getvalue()
    assert "ZeroDivisionError" in printed
    assert "secret" not in printed


def test_the_end_answers_what_it_took_and_nothing_else(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        service.engine.held = []
        asked, sending, idle = [await service.talk() for _ in range(3)]
        asked.post("/v1/recommend", GOOD)
        sending.say(ANNOUNCED + b"{")
        idle.get("/healthz")
        assert await idle.status() == 200
        while len(service.crowd.bodies) < 1 or not service.engine.held:
            await asyncio.sleep(0)
        ending = asyncio.ensure_future(service.crowd.disperse(30.0))
        assert await sending.code() == "not-ready"
        assert await idle.ended() == b""
        service.engine.let_go()
        status, headers, _ = await asked.hear()
        assert (status, headers.get("connection")) == (200, "close")
        assert await asked.ended() == b""
        sending.close()
        await ending
        assert not service.crowd.members
        late = await service.talk()
        assert await late.ended() == b""

    run(tmp_path, play)


def test_who_may_not_ask_any_more_when_all_has_come_is_refused(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    key = keys.create(["recommend"])

    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.say(b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n" % key.encode())
        talk.say(b"Content-Length: %d\r\n\r\n{" % len(GOOD))
        while not service.crowd.bodies:
            await asyncio.sleep(0)
        keys.revoke(key.split("_")[1])
        talk.say(GOOD[1:])
        assert await talk.code() == "no-valid-key"
        assert not service.engine.asked

    run(tmp_path, play)


@pytest.mark.parametrize("harm", ["revoked", "first key", "harmed"])
def test_a_stream_ends_when_its_key_does(tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "STREAM_SECONDS", 0.001)
    keys = Keys(tmp_path)
    key = None if harm == "first key" else keys.create(["read"])
    other = None if key is None else keys.create(["read"])

    async def play(service: Service) -> None:
        talk, stays = await service.talk(), await service.talk()
        talk.get("/v1/stream", "" if key is None else f"Authorization: Bearer {key}\r\n")
        stays.get("/v1/stream", "" if other is None else f"Authorization: Bearer {other}\r\n")
        for listener in (talk, stays):
            while not (await listener.line()).startswith(b"event: series"):
                pass
        if harm == "harmed":
            (tmp_path / "keys.json").write_bytes(b"nonsense")
        elif key is None:
            keys.create(["read"])
        else:
            keys.rotate(key.split("_")[1])  # changes the key, and does not end it
            for _ in range(3):
                while await talk.line() != b": nothing new\n":
                    pass
            keys.revoke(key.split("_")[1])
        await talk.ended()
        if harm == "revoked":
            while await stays.line() != b": nothing new\n":
                pass

    run(tmp_path, play)


def test_a_stream_that_is_asked_for_at_the_end_does_not_begin(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        service.engine.held = []
        talk = await service.talk()
        talk.get("/v1/stream")
        while not service.engine.held:
            await asyncio.sleep(0)
        service.application.news.close()
        ending = asyncio.ensure_future(service.crowd.disperse(60.0))
        await service.settled()
        service.engine.let_go()
        assert await talk.code() == "not-ready"
        assert await talk.ended() == b""
        await ending

    run(tmp_path, play)


def test_news_that_were_not_sent_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "STREAM_SECONDS", 0.001)

    async def play(service: Service) -> None:
        talk = await service.talk()
        talk.get("/v1/stream")
        while not service.application.news._told:
            await asyncio.sleep(0)
        (connection,) = service.crowd.members
        assert isinstance(connection, Connection)
        connection.pause_writing()
        asked = len(service.engine.asked)
        while len(service.engine.asked) < asked + 10:
            await asyncio.sleep(0)
        connection.resume_writing()
        while not (await talk.line()).startswith(b"event: series"):
            pass

    run(tmp_path, play)


def test_one_answer_that_fails_takes_no_other_with_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    stream = StringIO()
    configure_log("text", stream)
    request.addfinalizer(structlog.reset_defaults)

    async def play(service: Service) -> None:
        def fail(question: Any) -> None:
            raise ZeroDivisionError("a secret")

        talk = await service.talk()
        talk.get("/healthz")
        assert await talk.status() == 200
        bridge = service.application.bridge
        bridge.send(AskSeries(), Exchange(next(iter(service.crowd.members))), fail)  # type: ignore[arg-type]
        assert await bridge.ask(AskSeries())

    run(tmp_path, play)
    assert "ZeroDivisionError" in stream.getvalue()
    assert "secret" not in stream.getvalue()


def test_a_batch_of_refused_lines_lets_others_come_between(tmp_path: Path) -> None:
    async def play(service: Service) -> None:
        turns = 0

        async def ask(batch: FeedbackBatch) -> Any:
            raise AssertionError("nothing is to be asked")

        async def count() -> None:
            nonlocal turns
            while not batch.done():
                turns += 1
                await asyncio.sleep(0)

        batch = asyncio.ensure_future(answer_lines(b"x\n" * (20 * SLICE), ask))
        await count()
        assert turns >= 20 * SLICE // PORTION
        turns, batch = 0, asyncio.ensure_future(answer_lines((b"x" * SLICE_BYTES + b"\n") * 10, ask))
        await count()
        assert turns >= 10
        assert len((await batch).splitlines()) == 10

    run(tmp_path, play)


def test_long_lines_are_read_one_by_one() -> None:
    line = b"{" + b",".join(b'"%d":1' % number for number in range(1_900)) + b"}"
    assert bodies.PORTION_BYTES * 0.9 < len(line) < bodies.PORTION_BYTES
    turns = 0

    async def play() -> None:
        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.create_task(count())
        await bodies._read([line] * 8, Feedback)
        counting.cancel()

    asyncio.run(play())
    assert turns >= 4


def test_batches_take_turns_and_no_key_has_two(tmp_path: Path) -> None:
    greedy, *modest = (Keys(tmp_path).create(["feedback"]) for _ in range(4))

    async def play(service: Service) -> None:
        def batches() -> int:
            return sum(isinstance(asked, FeedbackBatch) for asked in service.engine.asked)

        async def send(key: str) -> Talk:
            talk = await service.talk()
            talk.post("/v1/feedback/batch", lines_of(1), f"Authorization: Bearer {key}\r\n")
            return talk

        async def taken(count: int) -> None:
            while service.application.admission.in_flight < count:
                await asyncio.sleep(0)
            await service.settled()

        service.engine.held = []
        talks = [await send(greedy)]
        await taken(1)
        talks += [await send(greedy) for _ in range(MOST_WAITING_OF_KEY)]
        await taken(1 + MOST_WAITING_OF_KEY)
        assert batches() == 1
        assert await (await send(greedy)).code() == "overloaded"
        talks += [await send(key) for key in modest]
        await taken(1 + MOST_WAITING_OF_KEY + 3)
        assert batches() == MOST_BATCHES
        talks[1].close()  # who does not wait leaves its turn to the next
        service.engine.let_go()
        for number, talk in enumerate(talks):
            if number != 1:
                assert await talk.status() == 200
        assert not service.application.turns._working
        assert not service.application.turns._waiting

    run(tmp_path, play)


def test_a_batch_has_its_turn_until_the_work_is_over_whoever_waits_for_it(tmp_path: Path) -> None:
    key = Keys(tmp_path).create(["feedback"])

    async def play(service: Service) -> None:
        service.engine.held = []
        gone = await service.talk()
        gone.post("/v1/feedback/batch", lines_of(1), f"Authorization: Bearer {key}\r\n")
        while not service.engine.held:
            await asyncio.sleep(0)
        (member,) = service.crowd.members
        member.hang_up()
        while service.crowd.members:
            await asyncio.sleep(0)
        talk = await service.talk()
        talk.post("/v1/feedback/batch", lines_of(1), f"Authorization: Bearer {key}\r\n")
        while not service.application.turns._waiting:
            await asyncio.sleep(0)
        assert len(service.engine.asked) == 1
        service.engine.let_go()
        assert await talk.status() == 200

    run(tmp_path, play)
