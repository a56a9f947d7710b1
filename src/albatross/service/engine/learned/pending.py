"""Pending items: what users were shown and have not rated yet."""

from collections.abc import Callable, Collection, Iterable, Mapping

PENDING = 10
"""Limit of pending items per user: the latest."""
PENDING_WINDOW = 100_000
"""A recommendation is pending for so many events, so that users who never answer cost nothing in the long run."""

Waiting = dict[int, int]
"""Pending items of one user, latest last, each with the event that showed it."""


class Pending(dict[str, Waiting]):
    """The pending items of all users. A user without any is not in it."""

    def show(self, user: str, items: Iterable[int], seq: int) -> None:
        """Event `seq` has shown these items."""
        waiting = self.setdefault(user, {})
        for item in items:
            waiting.pop(item, None)  # so that it moves to the end
            waiting[item] = seq
        while len(waiting) > PENDING:
            del waiting[next(iter(waiting))]

    def answer(self, user: str, item: int) -> None:
        """The user has rated the item."""
        waiting = self.get(user)
        if waiting is not None:
            waiting.pop(item, None)
            if not waiting:
                del self[user]

    def join(self, visitor: str, user: str, rated_since: Callable[[int], Mapping[int, int]]) -> None:
        """The user gets the items of both, except those rated after they were shown. `rated_since` tells the last rating of each item."""
        waiting = [*self.pop(visitor, {}).items(), *self.pop(user, {}).items()]
        waiting.sort(key=lambda entry: entry[1])  # items of one event keep their order
        rated = rated_since(waiting[0][1]) if waiting else {}
        both: Waiting = {}
        for item, seq in waiting:
            if rated.get(item, 0) < seq:
                both = still_pending(both, [item], seq)
        if both:
            self[user] = both

    def drop(self, gone: Collection[int]) -> None:
        """The decisions of these events are erased."""
        for user, waiting in list(self.items()):
            left = {item: seq for item, seq in waiting.items() if seq not in gone}
            if left:
                self[user] = left
            else:
                del self[user]

    def tidy(self, seq: int) -> None:
        """Drop expired items; `waiting_at` ignores them anyway."""
        oldest = seq - PENDING_WINDOW
        for user in [user for user, waiting in self.items() if max(waiting.values()) <= oldest]:
            del self[user]


def still_pending(before: Waiting, shown: Iterable[int], seq: int) -> Waiting:
    """The pending items of a user after event `seq` has shown these items: the latest, up to the limit."""
    after = Pending({"": dict(before)})
    after.show("", shown, seq)
    return after[""]


def waiting_at(pending: Waiting | None, seq: int) -> list[int]:
    """The pending items when event `seq` is decided, latest first."""
    if pending is None:
        return []
    oldest = seq - PENDING_WINDOW
    if next(iter(pending.values()), seq) > oldest:  # the oldest of them, because the latest are last
        return list(reversed(pending))
    return [item for item, shown in reversed(pending.items()) if shown > oldest]
