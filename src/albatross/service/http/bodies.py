"""Many ratings or items in one request: one JSON document per line in, one status line for each out."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from albatross.service.api.answers import Accepted, ItemAccepted, LineAnswer, Refusal
from albatross.service.api.errors import NotJson, Refused, TooLarge
from albatross.service.api.requests import Feedback, FeedbackBatch, Request, UpsertItem, UpsertItems
from albatross.service.api.values import MOST_EVENTS
from albatross.service.http.problems import of_error
from albatross.service.http.strict_json import read_as, shorten

PORTION = 100
"""Lines that are read at a time. They block the event loop for less than a millisecond …"""
PORTION_BYTES = 2**14
"""… if they are short. Long ones are fewer: at most so many bytes and one line."""
LONGEST_DETAIL = 200
"""Characters of a refusal: fewer than in a problem document, because ten thousand of them are one answer."""
SLICE = 500
"""Lines that are committed together. A commit of one line takes as long as one of a hundred; 500 lines keep the engine busy for 10 ms."""
SLICE_BYTES = 2**17
"""Limit of a slice in bytes. A single longer line is a slice of its own."""
MOST_BREADTH = 4
"""Limit of the length of a slice, in multiples of `SLICE`, for any number of shards."""

BatchLine = Feedback | UpsertItem
Done = Accepted | ItemAccepted | Refusal
Ask = Callable[[Any], Awaitable[Any]]
TOGETHER: dict[type[BatchLine], Callable[[Any], Request[Any]]] = {Feedback: FeedbackBatch, UpsertItem: UpsertItems}
"""The request that sends all lines of a kind to the engine at once."""


async def answer_lines(body: bytes, ask: Ask, reads: type[BatchLine] = Feedback, breadth: int = 1) -> bytes:
    """A status line for each line of a body, in order. `breadth`: the number of shards that share a slice.

    If the engine refuses a whole slice, each of its lines says so. The slices before it keep their answers.
    """
    answer = bytearray()
    for start, lines in _slices(split_lines(body), min(breadth, MOST_BREADTH)):
        answer += _written(start, await _results(await _read(lines, reads), ask, TOGETHER[reads]))
    return bytes(answer)


async def _read(lines: Sequence[bytes], reads: type[BatchLine]) -> list[BatchLine | Refusal]:
    """Read all lines. Other requests get their turn between portions."""
    found: list[BatchLine | Refusal] = []
    count = size = 0
    for line in lines:
        found.append(read_line(line, reads))
        count, size = count + 1, size + len(line)
        if count == PORTION or size > PORTION_BYTES:
            await asyncio.sleep(0)
            count = size = 0
    await asyncio.sleep(0)
    return found


def split_lines(body: bytes) -> list[bytes]:
    r"""The lines of a body, without an empty last line.

    >>> split_lines(b"1\n2\n")
    [b'1', b'2']
    """
    if not body.strip():
        raise NotJson("the body is empty")
    if body.count(b"\n") > MOST_EVENTS:  # count before splitting: a million lines take a hundred megabytes
        raise TooLarge(f"the body has more than {MOST_EVENTS} lines; accepted: up to that")
    lines = body.split(b"\n")
    if not lines[-1].strip():
        lines.pop()
    if len(lines) > MOST_EVENTS:
        raise TooLarge(f"the body has {len(lines)} lines; accepted: up to {MOST_EVENTS}")
    return lines


def read_line(line: bytes, reads: type[BatchLine] = Feedback) -> BatchLine | Refusal:
    """A line as a rating or an item, or as a refusal. A bad line does not affect the others."""
    try:
        if not line.strip():
            raise NotJson("the line is empty; accepted: one JSON document per line")
        return read_as(line, reads)
    except Exception as error:
        return _refusal(error)


async def _results(lines: Sequence[BatchLine | Refusal], ask: Ask, together: Callable[[Any], Request[Any]]) -> list[Done]:
    asked = [line for line in lines if not isinstance(line, Refusal)]
    answers: Iterator[Done]
    try:
        answers = iter((await ask(together(asked))).answers if asked else [])
    except Refused as error:
        answers = iter([_refusal(error)] * len(asked))
    return [line if isinstance(line, Refusal) else next(answers) for line in lines]


def _slices(lines: Sequence[bytes], breadth: int) -> Iterator[tuple[int, Sequence[bytes]]]:
    start = size = 0
    for number, line in enumerate(lines):
        if number > start and (number - start == SLICE * breadth or size + len(line) > SLICE_BYTES * breadth):
            yield start, lines[start:number]
            start, size = number, 0
        size += len(line)
    yield start, lines[start:]


def _refusal(error: Exception) -> Refusal:
    said = of_error(error)
    return Refusal(said.status, said.code, said.detail)


def _written(start: int, results: Iterable[Done]) -> bytes:
    return b"".join(msgspec.json.encode(_line(number, result)) + b"\n" for number, result in enumerate(results, start + 1))


def _line(number: int, result: Done) -> LineAnswer:
    if isinstance(result, Refusal):
        return LineAnswer(number, result.status, code=result.code, detail=shorten(result.detail, LONGEST_DETAIL))
    if isinstance(result, ItemAccepted):
        return LineAnswer(number, 200, result.seq, model_seq=result.model_seq, created=result.created)
    return LineAnswer(number, 200, result.seq, result.applied, result.duplicate, result.model_seq)
