"""All errors of a request. HTTP sends `status`, programs read `code`, people read the message."""

from typing import ClassVar

from albatross.core.errors import InvalidInput


class Refused(InvalidInput):
    """The request was not accepted, and nothing was changed."""

    status: ClassVar[int] = 422
    code: ClassVar[str] = "refused"


class BadValue(Refused):
    code = "bad-value"


class EventReused(Refused):
    """The id was used before with another content."""

    code = "event-reused"


class AlreadyRated(Refused):
    """Each item of a decision can be rated once."""

    code = "already-rated"


class NoEligibleCandidate(Refused):
    code = "no-eligible-candidate"


class UnknownItem(Refused):
    """The catalogue is closed, or there is no such item to retire."""

    status = 404
    code = "unknown-item"


class NotJson(Refused):
    """The body is not JSON, or readers could understand it differently, for example because of a repeated key."""

    status = 400
    code = "not-json"


class Unauthorized(Refused):
    status = 401
    code = "no-valid-key"


class Denied(Refused):
    """The key has another scope, or the Host or Origin is not accepted."""

    status = 403
    code = "forbidden"


class NotFound(Refused):
    """There is no such path, or no such shard."""

    status = 404
    code = "not-found"


class UnknownDecision(Refused):
    status = 404
    code = "unknown-decision"


class UnknownUser(Refused):
    status = 404
    code = "unknown-user"


class MethodNotAllowed(Refused):
    status = 405
    code = "method-not-allowed"


class TooSlow(Refused):
    """The request did not arrive in time."""

    status = 408
    code = "too-slow"


class EventInFlight(Refused):
    status = 409
    code = "event-in-flight"


class TooLarge(Refused):
    status = 413
    code = "too-large"


class Overloaded(Refused):
    status = 429
    code = "overloaded"
    retry_after: ClassVar[int] = 1
    """Seconds."""


class NotReady(Refused):
    """Replaying, draining, or closed."""

    status = 503
    code = "not-ready"


class StorageFailed(Refused):
    """A commit failed: nothing more is accepted, and the process should end."""

    status = 503
    code = "storage-failed"


class DiskFull(Refused):
    status = 507
    code = "disk-full"


class NotWritten(Refused):
    """A snapshot or a backup could not be written. The log is unchanged."""

    status = 507
    code = "not-written"


class NoMemory(Refused):
    """The model would need more memory than the machine has."""

    status = 507
    code = "no-memory"


class Unreachable(ConnectionError):
    """The service did not answer, in spite of retries."""


BY_CODE: dict[str, type[Refused]] = {
    kind.code: kind
    for kind in (
        Refused,
        BadValue,
        EventReused,
        AlreadyRated,
        NoEligibleCandidate,
        UnknownItem,
        NotJson,
        Unauthorized,
        Denied,
        NotFound,
        UnknownDecision,
        UnknownUser,
        MethodNotAllowed,
        TooSlow,
        EventInFlight,
        TooLarge,
        Overloaded,
        NotReady,
        StorageFailed,
        DiskFull,
        NotWritten,
        NoMemory,
    )
}
"""The exception that a client raises for the code of a problem document."""
