"""Errors as RFC 9457 problem details: one format for all, for people and for programs."""

from http import HTTPStatus

import structlog

from albatross.service.api.answers import Problem
from albatross.service.api.errors import (
    BadValue,
    Denied,
    DiskFull,
    EventInFlight,
    MethodNotAllowed,
    NotJson,
    NotReady,
    Overloaded,
    Refused,
    TooLarge,
    TooSlow,
    Unauthorized,
    UnknownDecision,
)
from albatross.service.http.logs import frames_of
from albatross.service.http.strict_json import shorten

MEDIA_TYPE = b"application/problem+json"
LONGEST_DETAIL = 1000
"""Characters: enough for a list of what is accepted. An answer repeats little of what was sent."""

MEANINGS: dict[int, tuple[type[Refused], str]] = {
    400: (NotJson, "The body is not valid JSON, or readers could understand it differently, for example because of a repeated key."),
    401: (Unauthorized, "There is no key, or it is unknown or has expired."),
    403: (Denied, "The key has another scope, or the Host or Origin is not one of this service."),
    404: (UnknownDecision, "There is no such decision or user."),
    405: (MethodNotAllowed, "The path has another method, which the header Allow names."),
    408: (TooSlow, "The body did not arrive in time."),
    409: (EventInFlight, "The same event or task is still in progress; try again."),
    413: (TooLarge, "The body is larger than 1 MiB, or has too many lines."),
    422: (BadValue, "A value is not accepted; nothing was changed."),
    429: (Overloaded, "The service is overloaded; nothing was changed. Try again after the seconds in Retry-After."),
    503: (NotReady, "The log is being replayed, the service is ending, the disk failed, or the file of keys cannot be read."),
    507: (DiskFull, "The disk or the memory is full: nothing was changed. Reading still works."),
}
"""The errors that a caller may get: by status, an example of its code and its meaning."""

log = structlog.get_logger()


def problem(status: int, code: str, detail: str) -> Problem:
    return Problem(f"urn:albatross:problem:{code}", HTTPStatus(status).phrase, status, shorten(detail, LONGEST_DETAIL), code)


def of_error(error: BaseException) -> Problem:
    """The problem for the caller. For an unexpected error the log gets type and frames; the caller gets neither these nor the message."""
    if isinstance(error, Refused):
        return problem(error.status, error.code, str(error))
    log.error("request failed", error=type(error).__name__, frames=frames_of(error))
    return problem(500, "failed", "the service failed to answer; its log says where")


def headers_of(error: BaseException) -> bytes:
    """Header lines that belong to an error."""
    if isinstance(error, Overloaded):
        return b"retry-after: %d\r\n" % error.retry_after
    return b"www-authenticate: Bearer\r\n" if isinstance(error, Unauthorized) else b""
