"""Everything a policy can report about users and the items shown to them, in one call of compiled code."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.core.agent import Agent
from albatross.core.asking.beliefs import Parts
from albatross.kernels.accounting import MOST_NAMED, NAMED, NAMED_COLUMNS, UNKNOWN, Account, account_for, describe
from albatross.kernels.building.addressing import by_address
from albatross.kernels.building.keeping import Kept, parts_of

MOST_PARTS = 12
"""Number of the user's ratings listed per item: those with the largest contributions."""
USUAL_LENGTH, USUAL_RATED = 6, 64
"""Initial sizes for a belief, and for the ratings of one user; the arrays grow when needed."""


class Report(NamedTuple):
    """An `Account` of one user, as lists."""

    sizes: list[int]
    center: list[float]
    radius: list[float]
    inverse: list[float]
    axes: list[list[float]]
    widths: list[list[float]]
    brief: list[list[float]]
    largest: list[list[int]]
    ratings: list[list[float]]
    largest_parts: list[list[float]]


def give_accounts(
    mind: Any, drawing: Any, room: Any, users: NDArray[np.int64], known: bool, items: NDArray[np.int32], average: float, whole: bool
) -> tuple[int, int]:
    """Fill the account of each user, for one row of items each; returns the sizes that are needed."""
    state, settings, scratch, _ = parts_of(mind)
    every = parts_of(room)
    length = rated = 0
    for step in range(users.size):
        account = by_address(
            Account(
                every.sizes[step],
                every.center[step],
                every.covariance,
                every.radius[step],
                every.inverse[step],
                every.axes[step],
                every.widths[step],
                every.brief[step],
                every.largest[step],
                every.ratings[step],
                every.largest_parts[step],
                every.rated,
                every.parts,
            )
        )
        account.sizes[0], account.sizes[1] = UNKNOWN, 0
        if whole:
            describe(state, settings, scratch, users[step], account)
        for place in range(items.shape[1]):
            account_for(state, settings, scratch, users[step], known, place, items[step, place], average, whole, account)
        length, rated = account.sizes[0], max(rated, account.sizes[1])
    return length, rated


class Accounts:
    """Keeps the arrays between accounts."""

    def __init__(self) -> None:
        self._make_room(1, USUAL_LENGTH, USUAL_RATED, 1)

    def _make_room(self, users: int, length: int, rated: int, n: int) -> None:
        several = (users, n, MOST_PARTS)
        self._account = Account(
            sizes=np.zeros((users, 3), np.int64),
            center=np.zeros((users, length)),
            covariance=np.zeros((length, length)),
            radius=np.zeros((users, 1)),
            inverse=np.zeros((users, length)),
            axes=np.zeros((users, length, length)),
            widths=np.zeros((users, n, 2)),
            brief=np.zeros((users, n, NAMED + NAMED_COLUMNS * MOST_NAMED)),
            largest=np.zeros(several, np.int32),
            ratings=np.zeros(several),
            largest_parts=np.zeros(several),
            rated=np.zeros(rated, np.int32),
            parts=np.zeros(rated),
        )
        self._kept = Kept(self._account)

    def of(
        self, agent: Agent, random: np.random.Generator, user: int, known: bool, items: Sequence[int] = (), average: float = 0.0
    ) -> Report:
        """The belief about a user, and the reasons for these items. `average`: the mean of all ratings.

        >>> from albatross.policies.alb import ALB
        >>> agent = Agent(ALB(rank=2), n_users=3, n_items=4)
        >>> agent.replay([0, 0], [1, 2], [4.0, 2.0])
        >>> report = Accounts().of(agent, agent.exploring, user=0, known=True, items=[3])
        >>> bool(np.isclose(report.brief[0][1], agent.select(0, [3]).mean)), sorted(report.largest[0][:2])
        (True, [1, 2])
        """
        return self.of_each(agent, random, [user], known, [items], average)[0]

    def of_each(
        self,
        agent: Agent,
        random: np.random.Generator,
        users: Sequence[int],
        known: bool,
        items: Sequence[Sequence[int]],
        average: float = 0.0,
    ) -> list[Report]:
        """The same for several users, with equally many items each. Either all users are known, or none."""
        account = self._filled(agent, random, users, known, items, average, True)
        told = [getattr(account, name)[: len(users)].tolist() for name in Report._fields]
        return [Report(*lists) for lists in zip(*told, strict=True)]

    def reasons(
        self,
        agent: Agent,
        random: np.random.Generator,
        users: Sequence[int],
        known: bool,
        items: Sequence[Sequence[int]],
        average: float,
    ) -> list[list[list[float]]]:
        """Only the reasons for the items of each user: `Brief`."""
        brief = self._filled(agent, random, users, known, items, average, False).brief
        told: list[list[list[float]]] = brief[: len(users), : len(items[0])].tolist()
        return told

    def reasons_for_one(
        self, agent: Agent, random: np.random.Generator, users: Sequence[int], items: Sequence[int], average: float
    ) -> list[list[float]]:
        """The same for one item of each user. All users are known."""
        told: list[list[float]] = self._filled(agent, random, users, True, items, average, False).brief[: len(users), 0].tolist()
        return told

    def parts_of_mean(self, agent: Agent, random: np.random.Generator, user: int, item: int) -> Parts | None:
        """What all ratings of a known user contribute to the mean of an item, until the next account; None if the policy cannot tell."""
        account = self._filled(agent, random, [user], True, [[item]], 0.0, False)
        rated = account.sizes.item(0, 1)
        return None if rated == UNKNOWN else Parts(account.rated[:rated], account.parts[:rated])

    def _filled(
        self,
        agent: Agent,
        random: np.random.Generator,
        users: Sequence[int],
        known: bool,
        items: Sequence[Sequence[int]] | Sequence[int],
        average: float,
        whole: bool,
    ) -> Account:
        rows = np.array(items, np.int32).reshape(len(users), -1)
        most, n = self._account.brief.shape[:2]
        if len(users) > most or rows.shape[1] > n:
            self._make_room(max(len(users), most), self._account.center.shape[1], self._account.rated.size, max(rows.shape[1], n))
        while True:
            length, rated = agent.run(give_accounts, random, self._kept, np.array(users), known, rows, average, whole)
            account = self._account
            if length in (account.center.shape[1], UNKNOWN) and rated <= account.rated.size:
                return account
            needed = account.center.shape[1] if length == UNKNOWN else max(length, 1)
            self._make_room(account.brief.shape[0], needed, max(2 * rated, account.rated.size), account.brief.shape[1])
