"""Visitors who were joined with users."""

from collections.abc import Mapping, Sequence

from albatross.core.errors import InvalidInput
from albatross.kernels.operations import join, offers


class Visitors:
    """The user of each joined visitor. Changed only by the log."""

    def __init__(self, users: Mapping[str, str] | None = None) -> None:
        self.users: dict[str, str] = {}
        """Users by visitor; a user is never a visitor of another user."""
        self._visitors: dict[str, list[str]] = {}
        for visitor, user in (users or {}).items():
            self.join(visitor, user)

    def known_as(self, name: str) -> str:
        """The user of a name: for a joined visitor another one, else the same."""
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


def check_joins(policy: str, state: object) -> None:
    """Refuse a join if the policy cannot do it."""
    if not offers(state, join):
        raise InvalidInput(
            f"policy {policy!r} cannot join users; accepted for joins: mean-field, ids, alb, alb-rs, item-mean, "
            "item-ucb, popularity-memory, user-ucb, oful, or a policy of your own with the operation `join`"
        )
