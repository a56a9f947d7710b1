"""TLS, for a service without a proxy that does it.

The event loop could do the handshake itself. But then a client that never finishes it would not be counted, and not be disconnected
when others need the place. So a handshake is a member of the crowd, like a connection.
"""

import asyncio
import contextlib
import ssl
from pathlib import Path
from socket import SHUT_RDWR, socket

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import Refused
from albatross.service.http.wire.connection import Connection
from albatross.service.http.wire.crowd import HEAD_SECONDS, LINGER_SECONDS, Crowd
from albatross.service.http.wire.responder import Responder

PAUSE_SECONDS = 0.1
"""Pause after the system could not accept a connection."""


def context_of(certificate: Path, private_key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, private_key)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{certificate} and {private_key} cannot be used: {error}; accepted: a certificate chain and its key") from error
    return context


async def accept(listening: socket, context: ssl.SSLContext, application: Responder, crowd: Crowd) -> None:
    """Accept connections and begin their handshakes, for ever."""
    loop = asyncio.get_running_loop()
    listening.setblocking(False)
    while True:
        try:
            client, _ = await loop.sock_accept(listening)
        except OSError:  # the client has left already, or no descriptor is free
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        client.setblocking(False)
        Handshake(client, context, application, crowd).begin()


class Handshake:
    """A client that has not finished its TLS handshake. It has the same deadline as a head."""

    def __init__(self, client: socket, context: ssl.SSLContext, application: Responder, crowd: Crowd) -> None:
        self._client, self._context, self._application, self._crowd = client, context, application, crowd
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._crowd.enter(self):
            self._task = asyncio.get_running_loop().create_task(self._shake_hands())
        else:
            self._client.close()

    async def _shake_hands(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: Connection(self._application, self._crowd),
                self._client,
                ssl=self._context,
                ssl_handshake_timeout=HEAD_SECONDS,
                ssl_shutdown_timeout=LINGER_SECONDS,
            )
        except OSError:  # not TLS, or nothing came: not worth a log line
            self._client.close()
        finally:
            self._crowd.leave(self)

    def hang_up(self) -> None:
        """Shut the socket down, as the client would. A cancelled handshake would wait for a close message that never comes."""
        self._crowd.leave(self)
        with contextlib.suppress(OSError):
            self._client.shutdown(SHUT_RDWR)

    give_up_head = give_up_body = end = hang_up

    def refuse(self, error: Refused) -> None:
        """There is no request to refuse yet."""
