"""Requests and answers between fronts and shards: whatever is packed is the same when it is unpacked."""

from typing import Any

import msgspec
import pytest

from albatross.service.api.answers import Accepted, Answer, BatchAccepted, ItemAccepted, ItemsAccepted, Refusal
from albatross.service.api.errors import BY_CODE, BadValue, Refused, TooLarge
from albatross.service.api.requests import Feedback, FeedbackBatch, ForgetUser, Recommend, Request, UpsertItem, UpsertItems
from albatross.service.api.route import Route
from albatross.service.api.routes import BY_REQUEST
from albatross.service.cluster.lines import packing
from albatross.service.cluster.lines.frames import HEAD, BrokenLine, Frames
from albatross.service.cluster.lines.packing import ASKED, ShardFailed, packed_answer, packed_request, unpacked_answer, unpacked_request
from albatross.service.engine.learned.visitors import Moved
from albatross.service.engine.moving import Forwarded
from albatross.service.engine.sharing import AskSums, Sums, TakeAdded


def sent(request: Request[Any]) -> Request[Any]:
    ((number, content),) = Frames().feed(packed_request(7, request))
    assert number == 7
    return unpacked_request(content)


def returned(answer: Answer | BaseException, request: Request[Any]) -> Answer | BaseException:
    ((number, content),) = Frames().feed(packed_answer(8, answer))
    assert number == 8
    return unpacked_answer(content, request)


@pytest.mark.parametrize("route", [pytest.param(route, id=route.path) for route in BY_REQUEST.values()])
def test_every_request_and_answer_arrives_as_it_was(route: Route) -> None:
    requests = [msgspec.convert(body, route.reads) for _, body in route.examples] if route.reads is not None else [route.asks]
    for request in requests:
        assert request is not None
        assert sent(request) == request
        assert isinstance(route.answered, Answer)
        assert returned(route.answered, request) == route.answered
        assert returned(Forwarded(route.answered, [1, 3]), request) == Forwarded(route.answered, [1, 3])


def test_so_do_those_that_no_client_sends() -> None:
    batch = FeedbackBatch([Feedback("a", 3.5, user="ann", item="tea"), Feedback("b", decision_id="1-x", event="click")])
    assert sent(batch) == batch
    mixed = BatchAccepted([Accepted(7, True, False, 9), Refusal(422, "bad-value", "rating is 9")])
    assert returned(mixed, batch) == mixed
    items = UpsertItems([UpsertItem("tea", in_stock=False), UpsertItem("mate", {"kind": ["herb"], "price": 2.5})])
    assert sent(items) == items
    added = ItemsAccepted([ItemAccepted("tea", False, True, 3, 4), Refusal(507, "disk-full", "no room")])
    assert returned(added, items) == added
    assert returned(Sums(1, 2, [[1.0, 2.0]]), AskSums()) == Sums(1, 2, [[1.0, 2.0]])


@pytest.mark.parametrize("kind", [*BY_CODE.values(), Moved])
def test_a_refusal_keeps_its_kind_and_its_words(kind: type[Refused]) -> None:
    found = returned(kind("why"), ForgetUser("ann"))
    assert (type(found), str(found)) == (kind, "why")


def test_of_other_errors_only_the_kind_is_told() -> None:
    found = returned(ZeroDivisionError("ann is a secret"), ForgetUser("ann"))
    assert isinstance(found, ShardFailed)
    assert str(found) == "ZeroDivisionError"


def test_what_is_no_message_is_refused() -> None:
    assert TakeAdded not in ASKED  # only the shard itself asks that
    for content in (b"", b"\0", b"\x09TakeAdded\x80", b"\x08Feedback\x81", packed_request(1, AskSums())):
        with pytest.raises(ValueError, match=r"no request|missing|truncated"):
            unpacked_request(content)
    for content in (b"", b"a", b"a\x80", b"f\x92", b"r\x80", b"?"):
        assert isinstance(unpacked_answer(content, ForgetUser("ann")), ShardFailed)
    with pytest.raises(BadValue, match="half a character"):
        packed_request(1, ForgetUser("\ud800"))


def test_what_is_too_long_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_BYTES", 100)
    with pytest.raises(TooLarge):
        packed_request(1, Recommend("ann", candidates=["x" * 100]))
    assert isinstance(returned(Sums(1, 2, [[0.0] * 100]), AskSums()), TooLarge)


def test_messages_are_found_however_they_arrive() -> None:
    messages = [packed_request(number, ForgetUser("a" * 50 * number)) for number in range(1, 5)]
    whole = b"".join(messages)
    for size in (1, 7, HEAD.size, 61, 1_000):
        frames, found = Frames(), []
        for place in range(0, len(whole), size):
            found += frames.feed(whole[place : place + size])
        assert [number for number, _ in found] == [1, 2, 3, 4]
        assert b"".join(HEAD.pack(len(content), number) + content for number, content in found) == whole
    with pytest.raises(BrokenLine):
        Frames().feed(HEAD.pack(2**26 + 1, 1))
