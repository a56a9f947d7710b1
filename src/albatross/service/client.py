"""The service from another process or machine: the verbs of `Recommender`, over HTTP."""

import http.client
import secrets
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from albatross.core.errors import InvalidInput
from albatross.service.messages import (
    Accepted,
    BadValue,
    Decision,
    Feedback,
    ForgetUser,
    Forgotten,
    ItemAccepted,
    Recommend,
    Refused,
    RestoreItem,
    RetireItem,
    Seen,
    Series,
    SnapshotTaken,
    TakeSnapshot,
    UpsertItem,
    UserView,
    Version,
    ViewUser,
)

PASSING = (409, 429, 503)
"""Statuses that will be another one in a moment: in flight, overloaded, replaying."""
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 2.0

T = TypeVar("T")


class Unreachable(ConnectionError):
    """There was no answer, however often it was asked for."""


class Client:
    """Asks a service. What gets no answer is sent again, with the same ids, so nothing counts twice. Any thread may use it.

    Client("http://localhost:8000") or Client("https://shop.example", key="alb_…").
    """

    def __init__(self, url: str, key: str | None = None, *, patience: float = 10.0, context: ssl.SSLContext | None = None) -> None:
        """`patience`: seconds in which to ask again, where there is no answer, or one that says: later. `context`: for own certificates."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise InvalidInput(f"url is {url!r}; accepted: http://host:port or https://host:port")
        self.url = url
        self.patience = patience
        self._host, self._port = parts.hostname, parts.port
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._headers = {"Content-Type": "application/json", **({} if key is None else {"Authorization": f"Bearer {key}"})}
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def recommend(
        self,
        user: str,
        n: int = 1,
        candidates: Sequence[str] | None = None,
        *,
        exclude: Sequence[str] = (),
        exclude_seen: Seen = "none",
        explain: bool = False,
        request_id: str | None = None,
    ) -> Decision:
        """What to show this user: one item, or n of them, best first."""
        if isinstance(candidates, str) or isinstance(exclude, str):
            raise BadValue("candidates or exclude is a text; accepted: a list of ids")
        chosen = None if candidates is None else list(candidates)
        request = Recommend(user, n, chosen, list(exclude), exclude_seen, explain, request_id or secrets.token_hex(16))
        return self._post("/v1/recommend", request, Decision)

    def rate(
        self, decision: Decision | str, rating: float, item: str | None = None, *, user: str | None = None, event_id: str | None = None
    ) -> Accepted:
        """The rating of a decision, or of its id; of several items, say which. Send it as often as you like with the same event_id."""
        name = decision.decision_id if isinstance(decision, Decision) else decision
        return self._post("/v1/feedback", Feedback(event_id or secrets.token_hex(16), rating, name, user, item), Accepted)

    def rate_item(self, user: str, item: str, rating: float, *, event_id: str | None = None) -> Accepted:
        """A rating without a decision: the user chose the item by themselves."""
        return self._post("/v1/feedback", Feedback(event_id or secrets.token_hex(16), rating, None, user, item), Accepted)

    def upsert_item(self, item: str) -> ItemAccepted:
        """There is such an item, and it may be shown."""
        return self._post("/v1/items/upsert", UpsertItem(item), ItemAccepted)

    def retire_item(self, item: str) -> ItemAccepted:
        """Never show it again; what was learned of it stays."""
        return self._post("/v1/items/retire", RetireItem(item), ItemAccepted)

    def restore_item(self, item: str) -> ItemAccepted:
        """It may be shown again."""
        return self._post("/v1/items/restore", RestoreItem(item), ItemAccepted)

    def user(self, user: str, n: int = 10) -> UserView:
        """What is believed of a user, and the n items with the best scores."""
        return self._post("/v1/users/get", ViewUser(user, n), UserView)

    def forget_user(self, user: str) -> Forgotten:
        """Erase a user from the log, and rebuild the model as if they had never come."""
        return self._post("/v1/users/forget", ForgetUser(user), Forgotten)

    def version(self) -> Version:
        """The state id, the head of the log, and what the folder began with."""
        return self._ask("GET", "/v1/version", None, Version)

    def series(self) -> Series:
        """How it went so far: mean rating, calibration and optimism."""
        return self._ask("GET", "/v1/series", None, Series)

    def snapshot(self) -> SnapshotTaken:
        """Write the model beside the log now."""
        return self._post("/v1/snapshot", TakeSnapshot(), SnapshotTaken)

    def close(self) -> None:
        """Give the connections back. The service goes on."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def _post(self, path: str, request: msgspec.Struct, kind: type[T]) -> T:
        try:
            body = msgspec.json.encode(request)
        except (TypeError, UnicodeEncodeError) as error:
            raise BadValue(f"the request cannot be written as JSON: {error}") from error
        return self._ask("POST", path, body, kind)

    def _ask(self, method: str, path: str, body: bytes | None, kind: type[T]) -> T:
        """The answer, asked for until patience ends. The body, and with it every id, is the same each time."""
        deadline = time.monotonic() + self.patience
        pause = FIRST_PAUSE
        while True:
            failure: Exception
            try:
                status, advice, content = self._once(method, path, body)
                if status == 200:
                    return msgspec.json.decode(content, type=kind)
                failure = _refusal(status, content)
                if status not in PASSING:
                    raise failure
                pause = max(pause, advice)
            except (OSError, http.client.HTTPException) as error:
                failure = Unreachable(f"{self.url} does not answer: {error or type(error).__name__}")
            if time.monotonic() + pause > deadline:
                raise failure
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, float, bytes]:
        """Status, seconds to wait as the service advises, and body."""
        connection = self._connect()
        try:
            connection.request(method, path, body, self._headers)
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        advice = response.getheader("Retry-After", "0")
        return response.status, float(advice) if advice.isdigit() else 0.0, content

    def _connect(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=max(self.patience, 1.0))
        return http.client.HTTPSConnection(self._host, self._port, timeout=max(self.patience, 1.0), context=self._context)


def _refusal(status: int, content: bytes) -> Refused:
    """The exception that the embedded recommender would have raised."""
    try:
        problem: Any = msgspec.json.decode(content)
        code, detail = str(problem["code"]), str(problem["detail"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        code, detail = "refused", f"status {status}, without a problem document"
    kind = next((known for known in _kinds(Refused) if known.code == code), Refused)
    error = kind.__new__(kind, detail)
    error.args = (detail,)
    error.status, error.code = status, code  # type: ignore[misc]
    return error


def _kinds(kind: type[Refused]) -> Iterator[type[Refused]]:
    for derived in kind.__subclasses__():
        yield derived
        yield from _kinds(derived)
