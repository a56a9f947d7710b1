"""Room for users, items and ratings: how a model grows, and how far it can."""

from functools import partial
from typing import NamedTuple

from albatross.core.agent import Agent
from albatross.core.errors import InvalidInput
from albatross.core.memory import footprint, require_memory
from albatross.core.streams import stream
from albatross.service.api.errors import NoMemory, UnknownItem

ROOM = 64
"""Initial room for users and items. A full model doubles: the log alone determines when it grows."""

UNLUCKY, AWRY = 256, 72
"""A policy stores one number of all items contiguously, then the next number. With a multiple of 256 items, all numbers of one item would
map to the same few places of the processor's cache: 72 more items halve the time of a choice."""


class Sizes(NamedTuple):
    users: int
    items: int


def sizes_for(agent: Agent, n_users: int, n_items: int) -> Sizes:
    """The sizes to which an agent grows that needs room for so many."""
    users, items = agent.n_users, agent.n_items
    while users < n_users:
        users *= 2
    while items < n_items:
        items *= 2
        items += AWRY if items % UNLUCKY == 0 else 0
    return Sizes(users, items)


class Room:
    """What the policy and the machine were found to hold."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._checked: tuple[int, int, int] | None = None
        self.ratings = 0
        """There is memory for so many ratings of known users and items."""

    def check(self, agent: Agent, n_users: int, n_items: int, n_ratings: int) -> None:
        """Refuse what the policy or the machine cannot hold, before it is written: otherwise no later start would succeed."""
        sizes = sizes_for(agent, n_users, n_items)
        ratings = 1 << max(n_ratings - 1, 0).bit_length()
        wanted = (*sizes, ratings)
        if wanted == self._checked:
            return
        if sizes.items > agent.n_items:
            try:
                agent.policy.init(1, sizes.items, partial(stream, self._seed), None)
            except InvalidInput as error:  # a policy with given features supports only so many
                raise UnknownItem(f"there is no room for item {n_items}: {error}") from error
        now = footprint(agent.policy, agent.n_users, agent.n_items)
        then = footprint(agent.policy, *sizes, ratings)
        growing = sizes != (agent.n_users, agent.n_items)
        try:
            require_memory(then + growing * now, f"a model of {sizes.users:,} users, {sizes.items:,} items and {ratings:,} ratings")
        except InvalidInput as error:
            raise NoMemory(str(error)) from error
        self._checked, self.ratings = wanted, ratings
