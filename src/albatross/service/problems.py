"""What went wrong, as RFC 9457 has it: one shape for every error, for people and for programs."""

from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.types import HTTPResponseStartEvent, Send

from albatross.service.messages import BadValue, Overloaded, Refused
from albatross.service.strict_json import NotJson

MEDIA_TYPE = "application/problem+json"

log = structlog.get_logger()


class Problem(msgspec.Struct, frozen=True):
    """Why a request was not answered."""

    type: str
    """What kind of problem, as a URI reference: stable, for programs."""
    title: str
    status: int
    detail: str
    """What was given, and what would be accepted."""
    code: str
    """The last part of `type`, for short."""


class Denied(Refused):
    """The key allows something else, or this caller may not ask at all."""

    status = 403
    code = "forbidden"


class Unauthorized(Refused):
    status = 401
    code = "no-valid-key"


class TooLarge(Refused):
    status = 413
    code = "too-large"

    def __init__(self) -> None:
        super().__init__("the body is larger than 1 MiB; accepted: up to that")


MEANINGS = {
    400: (NotJson.code, "The body is not JSON as its specification has it, or not one that every reader understands alike."),
    401: (Unauthorized.code, "There is no key, or not one of this service."),
    403: (Denied.code, "The key has another scope, or the Host or Origin is not one of this service."),
    404: ("unknown-decision", "There is no such decision or user."),
    409: ("event-in-flight", "The same event is on its way to the disk; ask again."),
    413: (TooLarge.code, "The body is larger than 1 MiB."),
    422: (BadValue.code, "A value is not accepted; nothing was changed."),
    429: (Overloaded.code, "More is asked than can be answered; nothing was changed. Try again after the seconds in Retry-After."),
    503: ("not-ready", "The log is being replayed, the service is ending, or the disk failed."),
    507: ("disk-full", "The disk is full: nothing was changed, reading goes on."),
}
"""Every error that a caller may meet: an example of its code, and what it means."""


def problem(status: int, code: str, detail: str) -> Problem:
    return Problem(f"urn:albatross:problem:{code}", HTTPStatus(status).phrase, status, detail, code)


def headers_of(error: Refused) -> dict[str, str]:
    if isinstance(error, Overloaded):
        return {"Retry-After": str(error.retry_after)}
    return {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else {}


def documented(*statuses: int) -> dict[int, ResponseSpec]:
    """These errors as OpenAPI wants them."""
    return {status: _documented(status) for status in (*statuses, 401, 403, 413, 429, 503)}


def of_refused(error: Refused) -> Problem:
    return problem(error.status, error.code, str(error))


def failed(path: str, error: Exception) -> Problem:
    """What nobody foresaw. The log gets the traceback; the caller gets neither that nor anything of another's request."""
    log.error("request failed", path=path, exc_info=error)
    return problem(500, "failed", "the service failed to answer; its log says why")


def on_refused(request: Request[Any, Any, Any], error: Refused) -> Response[Problem]:
    return _response(of_refused(error), headers_of(error))


def on_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
    """What the framework refuses: unknown paths, methods, too large a body, parameters."""
    if isinstance(error, ValidationException):
        return on_refused(request, NotJson("the body is empty"))  # the bodies that are not empty are read by us
    if error.status_code >= 500:
        return on_failure(request, error)
    if error.status_code == TooLarge.status:
        return on_refused(request, TooLarge())
    code = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "refused")
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return _response(problem(error.status_code, code, detail), dict(error.headers or {}))


def on_failure(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    return _response(failed(request.url.path, error), {})


async def send_problem(content: Problem, send: Send, headers: dict[str, str] | None = None) -> None:
    """Where there is no framework around."""
    await send_body(content.status, header_pairs({"content-type": MEDIA_TYPE, **(headers or {})}), msgspec.json.encode(content), send)


async def send_body(status: int, headers: list[tuple[bytes, bytes]], body: bytes, send: Send) -> None:
    length = (b"content-length", str(len(body)).encode())
    start: HTTPResponseStartEvent = {"type": "http.response.start", "status": status, "headers": [*headers, length]}
    await send(start)
    await send({"type": "http.response.body", "body": body, "more_body": False})


def header_pairs(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def _response(content: Problem, headers: dict[str, str]) -> Response[Problem]:
    return Response(content, status_code=content.status, media_type=MEDIA_TYPE, headers=headers)


def _documented(status: int) -> ResponseSpec:
    code, meaning = MEANINGS[status]
    example = Example(value=msgspec.to_builtins(problem(status, code, meaning)))
    return ResponseSpec(Problem, description=meaning, media_type=MEDIA_TYPE, generate_examples=False, examples=[example])
