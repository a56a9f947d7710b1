"""A real server process, for tests: started on a free port, ready when it says so."""

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

TEXT = re.compile(r"\S+ \[\w+ *\] (?P<event>\S+(?: \S+)*?)(?: {2,}(?P<fields>.*))?$")
FIELD = re.compile(r"(\w+)=(\S+)")
"""A line of the log for people."""


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Live:
    """`albatross serve` in its own process. Its log is read line by line, which is how the tests wait without sleeping."""

    def __init__(
        self,
        folder: Path | str,
        *options: str,
        scale: str | None = "1..5",
        port: int = 0,
        before: str = "",
        form: str = "json",
        python: str = sys.executable,
    ) -> None:
        """`before`: Python to run first in the process, as what lets a disk fail. `form`: of the log. `python`: of another environment."""
        command = [python, "-c", f"{before}\nimport sys, albatross.cli; sys.exit(albatross.cli.main())"]
        scales = [] if scale is None else [f"--scale={scale}"]
        arguments = ["serve", str(folder), *scales, "--port", str(port), "--log", form, *options]
        self.log: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self._told = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.port = int(re.search(r":(\d+)$", self.wait_for("listening")["url"]).group(1))  # type: ignore[union-attr]
        self._connection: http.client.HTTPConnection | None = None

    def _read(self) -> None:
        assert self.process.stderr is not None
        try:
            for line in self.process.stderr:
                with self._told:
                    self.lines.append(line)
                    if (start := line.find('{"')) >= 0:  # another thread may have written into the same line
                        self.log.append(json.JSONDecoder().raw_decode(line, start)[0])
                    elif told := TEXT.match(line):
                        self.log.append({"event": told["event"], **dict(FIELD.findall(told["fields"] or ""))})
                    self._told.notify_all()
        finally:  # also where a line cannot be read: who waits must not wait for ever
            self.process.stderr.close()
            with self._told:
                self._ended = True
                self._told.notify_all()

    def wait_for(self, event: str, **fields: Any) -> dict[str, Any]:
        """The first log line of that event, with those fields."""

        def found() -> dict[str, Any] | None:
            return next((line for line in self.log if {**line, "event": event, **fields} == line), None)

        with self._told:
            self._told.wait_for(lambda: found() or self._ended)
            line = found()
        assert line is not None, f"the server ended without {event!r}: {''.join(self.lines)}"
        return line

    def ask(self, method: str, path: str, body: bytes | str | dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> Reply:
        """One request; the connection is kept for the next."""
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            self._connection.request(method, path, content, headers or {})
            response = self._connection.getresponse()
            reply = Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        except BaseException:
            self.hang_up()
            raise
        if response.will_close:
            self.hang_up()
        return reply

    def post(self, path: str, body: bytes | str | dict[str, Any], headers: dict[str, str] | None = None) -> Reply:
        return self.ask("POST", path, body, headers)

    def get(self, path: str, headers: dict[str, str] | None = None) -> Reply:
        return self.ask("GET", path, None, headers)

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """End the process by a signal; returns its exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait()
        self._reader.join()
        self.hang_up()
        return code

    def __enter__(self) -> Self:
        self.wait_for("ready")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.kill()
        else:
            self.wait()
