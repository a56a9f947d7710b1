"""Where services of a test are at home: folders, or databases of a private PostgreSQL."""

import secrets
from pathlib import Path

from albatross.service.storage.home import Home, home_of
from albatross.service.tools.private_postgres import PrivatePostgres


class Place:
    """`place / "shop"` is the home of that name: the same one whenever it is asked for."""

    def __init__(self, folder: Path, server: PrivatePostgres | None) -> None:
        self.folder, self._server = folder, server
        self._addresses: dict[str, str] = {}

    def address(self, name: str) -> str:
        """What a command takes for that home."""
        if self._server is None:
            return str(self.folder / name)
        if name not in self._addresses:
            self._addresses[name] = self._server.create_database(f"{name}-{secrets.token_hex(4)}")
        return self._addresses[name]

    def __truediv__(self, name: str) -> Home:
        return home_of(self.address(name), None if self._server is None else self.folder / name)
