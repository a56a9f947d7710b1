"""Many ratings in one request: one JSON document a line in, one status line each out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.openapi.spec.enums import OpenAPIType

from albatross.service.messages import Accepted, BatchAccepted, Feedback, Refusal, Refused

NDJSON = "application/x-ndjson"


class LineAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one line: 200 and where it stands in the log, or why it was refused."""

    line: int
    """1 is the first."""
    status: int
    seq: int | None = None
    applied: bool | None = None
    duplicate: bool | None = None
    model_seq: int | None = None
    code: str | None = None
    detail: str | None = None


@dataclass
class BatchOperation(Operation):
    """What the batch takes, which no Python type says: lines."""

    request_body: RequestBody = field(
        default_factory=lambda: RequestBody(
            required=True, content={NDJSON: OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING), example=_EXAMPLE)}
        )
    )

    def __post_init__(self) -> None:
        if self.request_body is None:
            self.request_body = type(self)().request_body


def read_lines(body: bytes, read: Callable[[bytes], Feedback]) -> list[Feedback | Refusal]:
    """Each line as a rating, or why it is none."""

    def attempt(line: bytes) -> Feedback | Refusal:
        try:
            return read(line)
        except Refused as error:
            return Refusal(error.status, error.code, str(error))

    lines = body.split(b"\n")
    if not lines[-1].strip():
        lines.pop()
    return [attempt(line) for line in lines]


def answer_lines(lines: Sequence[Feedback | Refusal], accepted: BatchAccepted) -> bytes:
    """A status line for each line: the engine's answers stand where there was a rating."""
    answers = iter(accepted.answers)
    results = [line if isinstance(line, Refusal) else next(answers) for line in lines]
    return b"".join(msgspec.json.encode(_line(number, result)) + b"\n" for number, result in enumerate(results, 1))


def _line(number: int, result: Accepted | Refusal) -> LineAnswer:
    if isinstance(result, Refusal):
        return LineAnswer(number, result.status, code=result.code, detail=result.detail)
    return LineAnswer(number, 200, result.seq, result.applied, result.duplicate, result.model_seq)


_EXAMPLE = (
    '{"event_id": "e-1", "user": "ann", "item": "tea", "rating": 4.5}\n{"event_id": "e-2", "user": "bob", "item": "tea", "rating": 2}\n'
)
