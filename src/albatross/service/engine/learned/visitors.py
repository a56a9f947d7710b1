"""Visitors who turned out to be users: whose ratings theirs are, for ever."""

from collections.abc import Mapping, Sequence

from albatross.core.errors import InvalidInput
from albatross.kernels.operations import join, offers


class Visitors:
    """Which user each visitor is. Changed only by the log."""

    def __init__(self, users: Mapping[str, str] | None = None) -> None:
        self.users: dict[str, str] = {}
        """By visitor; a user is never a visitor of somebody else."""
        self._visitors: dict[str, list[str]] = {}
        for visitor, user in (users or {}).items():
            self.join(visitor, user)

    def known_as(self, name: str) -> str:
        """The user behind a name: another one where it is that of a visitor who was joined."""
        return self.users.get(name, name)

    def of(self, user: str) -> Sequence[str]:
        """The visitors who are this user."""
        return self._visitors.get(user, ())

    def join(self, visitor: str, user: str) -> None:
        """The visitor, and who was joined with them before, is this user."""
        moved = [*self._visitors.pop(visitor, ()), visitor]
        self._visitors.setdefault(user, []).extend(moved)
        for name in moved:
            self.users[name] = user


def check_joins(policy: str, state: object) -> None:
    """Refuse to join users where the policy cannot."""
    if not offers(state, join):
        raise InvalidInput(
            f"policy {policy!r} cannot let a visitor and a user be one; accepted for joins: mean-field, ids, alb, alb-rs, item-mean, "
            "item-ucb, popularity-memory, user-ucb, oful, or a policy of your own with the operation `join`"
        )
