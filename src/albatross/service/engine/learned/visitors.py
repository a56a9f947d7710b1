"""Visitors who were joined with users."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from albatross.core.errors import InvalidInput
from albatross.kernels.operations import join, offers
from albatross.service.api.errors import Refused


class Moved(Refused):
    """The visitor is now a user of another shard, to whom the request is to be sent. The message is the name of that user.

    A front follows it; no client ever sees it.
    """

    status: ClassVar[int] = 409
    code: ClassVar[str] = "moved"


class Visitors:
    """The user of each joined visitor. Changed only by the log."""

    def __init__(self, users: Mapping[str, str] | None = None, elsewhere: Mapping[str, str] | None = None) -> None:
        self.users: dict[str, str] = {}
        """Users by visitor; a user is never a visitor of another user."""
        self.elsewhere: dict[str, str] = dict(elsewhere or {})
        """Users of other shards, by visitors who have moved there."""
        self.hosts: set[str] = set(self.elsewhere.values())
        """Those users."""
        self._visitors: dict[str, list[str]] = {}
        for visitor, user in (users or {}).items():
            self.join(visitor, user)

    def known_as(self, name: str) -> str:
        """The user of a name: for a joined visitor another one, else the same."""
        return self.users.get(name) or self.elsewhere.get(name, name)

    def here(self, name: str) -> str:
        """The same for a user of this shard. Raises `Moved` if it is another one."""
        if name in self.elsewhere:
            raise Moved(self.elsewhere[name])
        return self.users.get(name, name)

    def of(self, user: str) -> Sequence[str]:
        """The visitors joined with this user."""
        return self._visitors.get(user, ())

    def join(self, visitor: str, user: str) -> None:
        """The visitor, and all visitors joined with it before, are now this user."""
        moved = [*self._visitors.pop(visitor, ()), visitor]
        self._visitors.setdefault(user, []).extend(moved)
        for name in moved:
            self.users[name] = user
            self.elsewhere.pop(name, None)  # it may have come back

    def leave(self, visitor: str, user: str) -> None:
        """The same if the user lives on another shard."""
        for name in (*self._visitors.pop(visitor, ()), visitor):
            self.users.pop(name, None)
            self.elsewhere[name] = user
        self.hosts.add(user)


def check_joins(policy: str, state: object) -> None:
    """Refuse a join if the policy cannot do it."""
    if not offers(state, join):
        raise InvalidInput(
            f"policy {policy!r} cannot join users; accepted for joins: a policy with the operation `join`, such as mean-field, ids or alb"
        )
