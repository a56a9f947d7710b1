"""Lists of users and of items, page by page."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from albatross.core.streams import stream
from albatross.service.api.requests import ListItems, ListUsers
from albatross.service.api.values import MOST_LISTED, MOST_SEARCHED, check_count, check_id
from albatross.service.api.views import ItemList, ListedItem, ListedUser, UserList
from albatross.service.engine.deciding.choosing import choose_counting
from albatross.service.engine.deciding.overlay import Overlay
from albatross.service.engine.learned.model import NONE, Model
from albatross.service.engine.learned.series import BOUNDLESS
from albatross.service.storage.store import ReadableLog


def list_users(model: Model, log: ReadableLog, request: ListUsers) -> UserList:
    _check_list(request)
    names = model.users.names
    found, following = _search(names, request.search, request.after, request.n)
    users = [
        ListedUser(names[number], int(model.ledger.user_ratings[number]))
        for number in found
        if model.visitors.known_as(names[number]) == names[number]
    ]
    return UserList(users, following, model.n_users, model.seq)


def list_items(model: Model, log: ReadableLog, request: ListItems) -> ItemList:
    _check_list(request)
    if request.user is not None:
        check_id("user", request.user)
    names, ledger = model.items.names, model.ledger
    found, following = _search(names, request.search, request.after, request.n)
    numbers = np.array(found, np.int32)
    means, scores = np.empty(0), np.empty(0)
    if numbers.size:
        row = len(model.users) if request.user is None else model.row_of(model.visitors.here(request.user))
        agent = Overlay(model).agent_for(row)
        choose_counting(agent, row, numbers, NONE, stream(model.genesis.seed, "viewing"))
        means, scores = agent.slate.means[: numbers.size], agent.slate.scores[: numbers.size]
    places = leading_axes(getattr(model.agent.state, "item_factors", None), len(names))
    items = [
        ListedItem(
            item=names[number],
            ratings=(ratings := int(ledger.item_ratings[number])),
            rating=float(ledger.item_sums[number]) / ratings if ratings else None,
            shown=int(ledger.item_shown[number]),
            retired=number in model.retired,
            mean=float(mean),
            bonus=float(score - mean) if abs(score) < BOUNDLESS else None,
            x=None if places is None else float(places.points[number, 0]),
            y=None if places is None else float(places.points[number, 1]),
            **_described(model, number),
        )
        for number, mean, score in zip(found, means, scores, strict=True)
    ]
    return ItemList(items, following, len(names), None if places is None else places.explained, model.seq)


def _described(model: Model, number: int) -> dict[str, Any]:
    """The description of an item."""
    known = model.described.known.get(number)
    if known is None:
        return {}
    return {name: value for name in known.__struct_fields__ if (value := getattr(known, name)) is not UNSET}


class Places(NamedTuple):
    points: NDArray[np.float64]
    explained: list[float]


def leading_axes(vectors: object, n_items: int) -> Places | None:
    """The item vectors on the two axes along which they vary most.

    >>> leading_axes(np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]), 4).explained
    [0.9, 0.1]
    """
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.shape[1] < 2 or n_items == 0:
        return None
    known = np.asarray(vectors[:n_items], np.float64)
    centred = known - known.mean(axis=0)
    eigenvalues, axes = np.linalg.eigh(centred.T @ centred)
    leading = axes[:, ::-1][:, :2]
    leading = leading * np.where(leading[np.abs(leading).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)  # fix the arbitrary sign of an axis
    total = float(eigenvalues.sum())
    shares = [float(value / total) if total > 0 else 0.0 for value in eigenvalues[::-1][:2]]
    return Places(centred @ leading, [round(max(share, 0.0), 12) for share in shares])


def _check_list(request: ListUsers | ListItems) -> None:
    check_count("n", request.n, 1, MOST_LISTED)
    check_count("after", request.after, 0, 2**53 - 1)
    if request.search is not None:
        check_id("search", request.search)


def _search(names: Sequence[str], search: str | None, after: int, n: int) -> tuple[list[int], int | None]:
    """The numbers of the next n names, or of those that contain a text, and where to go on."""
    if search is None:
        end = min(after + n, len(names))
        return list(range(min(after, len(names)), end)), end if end < len(names) else None
    wanted, found = search.casefold(), []
    end = min(after + MOST_SEARCHED, len(names))
    for number in range(after, end):
        if wanted in names[number].casefold():
            found.append(number)
            if len(found) == n:
                end = number + 1
                break
    return found, end if end < len(names) else None
