"""TLS, for those who have no proxy that does it.

The event loop would do it by itself, but whoever opens a connection and never shakes hands would be nobody's: not counted, and not sent
away when others need the place. So a handshake is a member of the crowd, like a connection.
"""

import asyncio
import contextlib
import ssl
from pathlib import Path
from socket import SHUT_RDWR, socket

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import Refused
from albatross.service.http.wire.connection import Application, Connection
from albatross.service.http.wire.crowd import HEAD_SECONDS, LINGER_SECONDS, Crowd

PAUSE_SECONDS = 0.1
"""Before the next try, where the system could not accept a connection."""


def context_of(certificate: Path, private_key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, private_key)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{certificate} and {private_key} cannot be used: {error}; accepted: a certificate chain and its key") from error
    return context


async def accept(listening: socket, context: ssl.SSLContext, application: Application, crowd: Crowd) -> None:
    """Shake hands with everybody who comes, for ever."""
    loop = asyncio.get_running_loop()
    listening.setblocking(False)
    while True:
        try:
            client, _ = await loop.sock_accept(listening)
        except OSError:  # it was gone before we saw it, or there is no descriptor left just now
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        client.setblocking(False)
        Handshake(client, context, application, crowd).begin()


class Handshake:
    """A client that has not shown yet that it speaks TLS. It has as long as for a head."""

    def __init__(self, client: socket, context: ssl.SSLContext, application: Application, crowd: Crowd) -> None:
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
        except OSError:  # what is not TLS, or does not come, is no news
            self._client.close()
        finally:
            self._crowd.leave(self)

    def hang_up(self) -> None:
        """End it as the client would: a handshake that is cancelled waits for the farewell of one who never said a word."""
        self._crowd.leave(self)
        with contextlib.suppress(OSError):
            self._client.shutdown(SHUT_RDWR)

    give_up_head = give_up_body = end = hang_up

    def refuse(self, error: Refused) -> None:
        """There is no request yet."""
