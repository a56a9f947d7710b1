"""A bare uvicorn that answers any body with so many bytes: the cost of a request without an application.

`python -m benchmarks.serving.echo BYTES` prints its port and serves until it is ended.
"""

import socket
import sys
from typing import Any

import uvicorn


def application(answer: bytes) -> Any:
    head = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())],
    }

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            body += event["body"]
            if not event.get("more_body"):
                break
        await send(head)
        await send({"type": "http.response.body", "body": answer})

    return echo


def main(length: int) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(listening.getsockname()[1], flush=True)
        configuration = uvicorn.Config(
            application(b" " * length),
            http="httptools",
            loop="uvloop",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=600,  # between two turns a connection is idle
        )
        uvicorn.Server(configuration).run(sockets=[listening])


if __name__ == "__main__":
    main(int(sys.argv[1]))
