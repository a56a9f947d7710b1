"""All ratings, whatever the policy stores: one entry per rating, chained per user, latest first."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import program
from albatross.kernels.pairs import NOTHING


class Ledger(NamedTuple):
    user_ratings: NDArray[np.int64]
    item_ratings: NDArray[np.int64]
    item_sums: NDArray[np.float64]
    """Per item: the sum of its ratings."""
    item_shown: NDArray[np.int64]
    """Per item: how often decisions have shown it."""
    everybody: NDArray[np.float64]
    """The number of all ratings, and their sum."""
    latest: NDArray[np.int32]
    """Per user: the latest entry."""
    before: NDArray[np.int32]
    """Per entry: the user's previous entry."""
    items: NDArray[np.int32]
    seqs: NDArray[np.int64]
    """Per entry: the event of the rating."""
    used: NDArray[np.int64]
    """Number of entries; the arrays may be longer."""


def no_ledger(n_users: int, n_items: int) -> Ledger:
    return Ledger(
        user_ratings=np.zeros(n_users, np.int64),
        item_ratings=np.zeros(n_items, np.int64),
        item_sums=np.zeros(n_items),
        item_shown=np.zeros(n_items, np.int64),
        everybody=np.zeros(2),
        latest=np.full(n_users, NOTHING, np.int32),
        before=np.empty(0, np.int32),
        items=np.empty(0, np.int32),
        seqs=np.empty(0, np.int64),
        used=np.zeros(1, np.int64),
    )


def grown(ledger: Ledger, n_users: int, n_items: int) -> Ledger:
    """The same with room for more users and items."""
    larger = no_ledger(n_users, n_items)
    for name in ("user_ratings", "item_ratings", "item_sums", "item_shown", "latest"):
        getattr(larger, name)[: getattr(ledger, name).size] = getattr(ledger, name)
    return larger._replace(everybody=ledger.everybody, before=ledger.before, items=ledger.items, seqs=ledger.seqs, used=ledger.used)


def mean_rating(ledger: Ledger) -> float:
    """The mean of all ratings, with several shards those of all of them; 0 if there are none."""
    count, total = ledger.everybody.tolist()
    return float(total / max(count, 1.0))


def trimmed(ledger: Ledger) -> Ledger:
    """A copy without the unused ends."""
    used = int(ledger.used[0])
    parts = ledger._replace(before=ledger.before[:used], items=ledger.items[:used], seqs=ledger.seqs[:used])
    return parts._replace(**{name: array.copy() for name, array in parts._asdict().items()})


def _with_room(ledger: Ledger, count: int) -> Ledger:
    needed = int(ledger.used[0]) + count
    if needed > ledger.items.size:
        room = max(needed, 2 * ledger.items.size)
        ledger = ledger._replace(**{name: np.resize(getattr(ledger, name), room) for name in ("before", "items", "seqs")})
    return ledger


def brought(ledger: Ledger, user: int, items: NDArray[np.int32], seq: int) -> Ledger:
    """The ledger with ratings that a user without any has brought from another shard, which goes on counting them among those of items."""
    ledger = _with_room(ledger, items.size)
    first = int(ledger.used[0])
    entries = np.arange(first, first + items.size, dtype=np.int32)
    ledger.items[entries], ledger.seqs[entries] = items, seq
    ledger.before[entries] = entries - 1
    ledger.before[first : first + 1] = NOTHING
    ledger.user_ratings[user] = items.size
    ledger.latest[user] = entries[-1]
    ledger.used[0] += items.size
    return ledger


def left(ledger: Ledger, user: int) -> None:
    """The user moves to another shard. Entries keep their places, and items their counts."""
    ledger.user_ratings[user], ledger.latest[user] = 0, NOTHING


def entered(
    ledger: Ledger, users: NDArray[np.int64], items: NDArray[np.int64], ratings: NDArray[np.float64], seqs: NDArray[np.int64]
) -> Ledger:
    """The ledger with these ratings added, in order."""
    ledger = _with_room(ledger, users.size)
    program(enter_all)(ledger, users, items, ratings, seqs)
    return ledger


def enter_all(
    ledger: Ledger, users: NDArray[np.int64], items: NDArray[np.int64], ratings: NDArray[np.float64], seqs: NDArray[np.int64]
) -> None:
    """Compiled, because a replay adds millions of ratings."""
    for step in range(users.size):
        user, item, entry = users[step], items[step], ledger.used[0]
        ledger.user_ratings[user] += 1
        ledger.item_ratings[item] += 1
        ledger.item_sums[item] += ratings[step]
        ledger.everybody[0] += 1.0
        ledger.everybody[1] += ratings[step]
        ledger.before[entry] = ledger.latest[user]
        ledger.items[entry] = item
        ledger.seqs[entry] = seqs[step]
        ledger.latest[user] = np.int32(entry)
        ledger.used[0] += 1


def read_rated(ledger: Ledger, user: int, items: NDArray[np.int32]) -> None:
    entry = ledger.latest[user]
    for position in range(items.size):
        items[position] = ledger.items[entry]
        entry = ledger.before[entry]


def rated_by(ledger: Ledger, user: int) -> NDArray[np.int32]:
    """The items the user rated, once per rating, latest first."""
    items = np.empty(int(ledger.user_ratings[user]), np.int32)
    program(read_rated)(ledger, user, items)
    return items


def latest_of(ledger: Ledger, user: int, n: int) -> list[tuple[int, int]]:
    """The events and items of the user's latest ratings, latest first, at most `n`."""
    found: list[tuple[int, int]] = []
    entry = int(ledger.latest[user])
    while entry != NOTHING and len(found) < n:
        found.append((int(ledger.seqs[entry]), int(ledger.items[entry])))
        entry = int(ledger.before[entry])
    return found


def rated_since(ledger: Ledger, user: int, seq: int) -> dict[int, int]:
    """The items that the user has rated after an event, each with the event of the latest rating."""
    rated: dict[int, int] = {}
    entry = int(ledger.latest[user])
    while entry != NOTHING and ledger.seqs[entry] > seq:
        rated.setdefault(int(ledger.items[entry]), int(ledger.seqs[entry]))
        entry = int(ledger.before[entry])
    return rated


def join_entries(ledger: Ledger, user: int, other: int) -> None:
    """Compiled, because a user may have thousands of entries. Entries are in the order of the ratings."""
    last, own, theirs = NOTHING, ledger.latest[user], ledger.latest[other]
    while theirs != NOTHING:
        if theirs > own:
            own, theirs = theirs, own
        if last == NOTHING:
            ledger.latest[user] = own
        else:
            ledger.before[last] = own
        last, own = own, ledger.before[own]
        if own == NOTHING:
            own, theirs = theirs, NOTHING
            ledger.before[last] = own
    ledger.latest[other] = NOTHING
    ledger.user_ratings[user] += ledger.user_ratings[other]
    ledger.user_ratings[other] = 0


def joined(ledger: Ledger, user: int, other: int) -> None:
    """Assign all entries of one user to another, in the order of the ratings."""
    program(join_entries)(ledger, user, other)


def exchange_entry(ledger: Ledger, user: int, before: int, after: int) -> int:
    """Compiled, because a user may have thousands."""
    entry = ledger.latest[user]
    while entry != NOTHING and ledger.seqs[entry] != before:
        entry = ledger.before[entry]
    if entry != NOTHING:
        ledger.seqs[entry] = after
    return int(entry)


def corrected(ledger: Ledger, item: int, change: float) -> None:
    """A rating of the item now differs by `change`."""
    ledger.item_sums[item] += change
    ledger.everybody[1] += change


def exchanged(ledger: Ledger, user: int, item: int, before: int, after: int, change: float) -> int:
    """Replace the rating of event `before` by that of event `after`, which differs by `change`. Returns the number of ratings before it."""
    corrected(ledger, item, change)
    entry: int = program(exchange_entry)(ledger, user, before, after)
    return entry


def renew_entry(ledger: Ledger, user: int, item: int, after: int) -> None:
    """Compiled, because a user may have thousands."""
    entry = ledger.latest[user]
    while entry != NOTHING and ledger.items[entry] != item:
        entry = ledger.before[entry]
    if entry != NOTHING:
        ledger.seqs[entry] = after


def renewed(ledger: Ledger, user: int, item: int, after: int) -> None:
    """The latest rating of an item, which came from another shard, was replaced by that of event `after`."""
    program(renew_entry)(ledger, user, item, after)
