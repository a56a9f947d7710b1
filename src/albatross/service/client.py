"""The service from another process or machine: the methods of `Recommender`, over HTTP."""

import http.client
import secrets
import ssl
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import BY_CODE, BadValue, Refused, Unreachable
from albatross.service.api.requests import Recommend, Request
from albatross.service.api.routes import BY_REQUEST
from albatross.service.api.verbs import A, Verbs

PASSING = (409, 429, 503)
"""Temporary statuses: in flight, overloaded, replaying."""
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 2.0


class Client(Verbs):
    """Sends requests to a service. Without an answer, it retries with the same ids, so nothing counts twice. Thread-safe.

    Client("http://localhost:8000"), Client("http://localhost:8000/shops/tea") or Client("https://shop.example", key="alb_…").
    """

    def __init__(self, url: str, key: str | None = None, *, patience: float = 10.0, context: ssl.SSLContext | None = None) -> None:
        """`patience`: seconds for retries if there is no answer or a temporary refusal. `context`: for your own certificates."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInput(f"url is {url!r}; accepted: http://host:port or https://host:port, with the path of a shop, if it has one")
        self.url = url
        self.patience = patience
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path.rstrip("/")
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._headers = {"Content-Type": "application/json", **({} if key is None else {"Authorization": f"Bearer {key}"})}
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def ask(self, request: Request[A]) -> A:
        route = BY_REQUEST[type(request)]
        body = None
        if route.method == "POST":
            try:
                body = msgspec.json.encode(_repeatable(request))
            except (TypeError, UnicodeEncodeError) as error:
                raise BadValue(f"the request cannot be written as JSON: {error}") from error
        answer: Any = msgspec.json.decode(self._insist(route.method, route.path, body), type=route.answer)
        return answer  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the connections. The service goes on."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def _insist(self, method: str, path: str, body: bytes | None) -> bytes:
        """Send a request, with retries until patience ends. The body, and so every id, is the same each time."""
        deadline = time.monotonic() + self.patience
        pause = FIRST_PAUSE
        while True:
            failure: Exception
            try:
                status, advice, content = self._once(method, path, body)
                if status == 200:
                    return content
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
        """Status, the seconds to wait that the service advises, and body."""
        connection = self._connect()
        try:
            connection.request(method, self._path + path, body, self._headers)
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


def _repeatable(request: Request[Any]) -> Request[Any]:
    """The request with an id, so that a retry does not count twice."""
    if isinstance(request, Recommend) and request.request_id is None:
        return msgspec.structs.replace(request, request_id=secrets.token_hex(16))
    return request


def _refusal(status: int, content: bytes) -> Refused:
    """The exception that the embedded recommender would have raised."""
    try:
        problem: Any = msgspec.json.decode(content)
        code, detail = str(problem["code"]), str(problem["detail"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        code, detail = "refused", f"status {status}, without a problem document"
    error = BY_CODE.get(code, Refused)(detail)
    if error.code != code or error.status != status:
        error.status, error.code = status, code  # type: ignore[misc] # of this one error: a newer service may say more
    return error
