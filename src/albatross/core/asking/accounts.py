"""Everything a policy can report about a user and the items shown, in one call of compiled code."""

from typing import Any

import numpy as np

from albatross.core.agent import Agent
from albatross.kernels.accounting import UNKNOWN, Account, account_for, describe
from albatross.kernels.building.keeping import Kept, parts_of
from albatross.kernels.operations import ALL_ITEMS, Items

MOST_PARTS = 12
"""Number of the user's ratings listed per item: those with the largest contributions."""
USUAL_LENGTH, USUAL_RATED = 6, 64
"""Initial sizes for a belief, and for the ratings of one user; the arrays grow when needed."""


def give_account(mind: Any, drawing: Any, room: Any, user: int, known: bool, items: Items) -> tuple[int, int]:
    """Fill the account; returns the sizes it needs."""
    state, settings, scratch, _ = parts_of(mind)
    account = parts_of(room)
    describe(state, settings, scratch, user, account)
    account.sizes[1] = 0
    for place in range(items.size):
        account_for(state, settings, scratch, user, known, place, items[place], account)
    return account.sizes[0], account.sizes[1]


class Accounts:
    """Keeps the arrays between accounts: an account is valid until the next one."""

    def __init__(self) -> None:
        self._make_room(USUAL_LENGTH, USUAL_RATED, 1)

    def _make_room(self, length: int, rated: int, n: int) -> None:
        several = (n, MOST_PARTS)
        self._account = Account(
            sizes=np.zeros(3, np.int64),
            center=np.zeros(length),
            covariance=np.zeros((length, length)),
            radius=np.zeros(1),
            inverse=np.zeros(length),
            axes=np.zeros((length, length)),
            widths=np.zeros((n, 2)),
            totals=np.zeros(n),
            own=np.zeros(n, np.int64),
            largest=np.zeros(several, np.int32),
            ratings=np.zeros(several),
            largest_parts=np.zeros(several),
            rated=np.zeros(rated, np.int32),
            parts=np.zeros(rated),
        )
        self._kept = Kept(self._account)

    def of(self, agent: Agent, random: np.random.Generator, user: int, known: bool, items: Items = ALL_ITEMS) -> Account:
        """The belief about a user, and the reasons for these items.

        >>> from albatross.policies.alb import ALB
        >>> agent = Agent(ALB(rank=2), n_users=3, n_items=4)
        >>> agent.replay([0, 0], [1, 2], [4.0, 2.0])
        >>> account = Accounts().of(agent, agent.exploring, user=0, known=True, items=np.array([3], np.int32))
        >>> bool(np.isclose(account.totals[0], agent.select(0, [3]).mean)), sorted(account.largest[0, :2].tolist())
        (True, [1, 2])
        """
        account = self._account
        if items.size > account.own.size:
            self._make_room(account.center.size, account.rated.size, items.size)
        while True:
            length, rated = agent.run(give_account, random, self._kept, user, known, items)
            account = self._account
            if length in (account.center.size, UNKNOWN) and rated <= account.rated.size:
                return account
            self._make_room(max(length, 1), max(2 * rated, account.rated.size), account.own.size)
