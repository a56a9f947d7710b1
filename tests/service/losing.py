"""A connection that dies after the request was applied: what stands between a client and a service, and loses answers."""

import socket
import socketserver
import threading
from io import BufferedIOBase
from types import TracebackType
from typing import Self


class Losing(socketserver.ThreadingTCPServer):
    """Passes requests on. Of each path to be lost, the first answer is received, and the client's connection ended instead."""

    daemon_threads = True

    def __init__(self, port: int, *paths: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.upstream, self.to_lose = port, set(paths)
        self.port: int = self.server_address[1]
        self.asked: list[bytes] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None = None, error: BaseException | None = None, traceback: TracebackType | None = None
    ) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Passing(socketserver.StreamRequestHandler):
    server: Losing

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.upstream)) as upstream, upstream.makefile("rb") as answers:
            while request := _message(self.rfile):
                path = request.split(b" ", 2)[1]
                self.server.asked.append(path)
                upstream.sendall(request)
                answer = _message(answers)
                if path in self.server.to_lose:
                    self.server.to_lose.discard(path)
                    return
                self.wfile.write(answer)


def _message(stream: BufferedIOBase) -> bytes:
    """A head and a body of the length it says."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return b""
        head += line
    length = next((int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:")), 0)
    return head + bytes(stream.read(length))
