"""A small HTTP client for one machine: it keeps its connection, and costs little compared to the server it measures."""

import asyncio
from typing import Self


class Connection:
    """One persistent connection. Any failure is a `ConnectionError`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Self:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, method: str, path: str, body: bytes = b"", headers: str = "") -> tuple[int, bytes]:
        """Status and body of the answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        try:
            self._writer.write(head.encode() + body)
            answer = await self._reader.readuntil(b"\r\n\r\n")
            status = int(answer[9:12])
            length = answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            return status, await self._reader.readexactly(int(length or 0))
        except (asyncio.IncompleteReadError, OSError) as error:
            raise ConnectionError(str(error)) from error

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        return await self.ask("POST", path, body)

    def close(self) -> None:
        self._writer.close()
