"""Functions for any policy's state: a NamedTuple of arrays and of further such tuples."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.kernels.pairs import KEPT, NOTHING, Pairs, places

State = TypeVar("State", bound=tuple[Any, ...])

SMALLEST_ROOM = 64
"""Smallest capacity of a table of pairs."""


def check_parts(owner: str, part: str, value: Any, numbers: bool = False) -> None:
    """Refuse anything but a NamedTuple of arrays and of further such tuples; with `numbers`, also of numbers."""
    fields = getattr(value, "_fields", ())
    if not isinstance(value, tuple) or not fields:
        raise InvalidInput(
            f"policy {owner!r}: {part} is of type {type(value).__name__}; accepted: a NamedTuple of arrays, with at least one field"
        )
    for name, content in zip(fields, value, strict=True):
        sort = type(content).__name__ if not isinstance(content, np.ndarray) else f"array of {content.dtype}"
        if isinstance(content, tuple):
            check_parts(owner, f"{part}.{name}", content, numbers)
        elif isinstance(content, np.ndarray) and content.dtype.kind in "biufcV" and not content.dtype.hasobject:
            continue
        elif not numbers:
            number = isinstance(content, int | float | np.generic)
            hint = "an array of length 1" if number else "an array of numbers"
            raise InvalidInput(f"policy {owner!r}: {part}.{name} is of type {sort}; accepted: {hint}, or a NamedTuple of arrays")
        elif not isinstance(content, int | float | np.number | np.bool_):
            raise InvalidInput(
                f"policy {owner!r}: {part}.{name} is of type {sort}; accepted: a number, an array of numbers, or a NamedTuple of them"
            )


def flatten(state: tuple[Any, ...], prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array of a state with its dotted name; tables of pairs in a fixed order, user by user."""
    if isinstance(state, Pairs):
        state = _in_order(state)
    for name, value in zip(state._fields, state, strict=True):  # type: ignore[attr-defined]
        if isinstance(value, tuple):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def identity(state: tuple[Any, ...]) -> str:
    """A digest of exactly what was learned: two states have the same one only if they agree bit for bit."""
    digest = hashlib.blake2b(digest_size=16)
    for name, array in flatten(state):
        digest.update(f"{name} {np.lib.format.dtype_to_descr(array.dtype)} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def copied(state: State) -> State:
    """A copy with its own arrays."""
    parts = (copied(value) if isinstance(value, tuple) else value.copy(order="K") for value in state)
    return type(state)(*parts)


def reserve(state: State, n_more: int) -> State:
    """The state with room for at least `n_more` further pairs. It grows by at least two fifths, so that copying stays cheap.

    An unusable place counts as a pair to come.
    """

    def widen(pairs: Pairs) -> Pairs:
        size, needed = pairs.items.size, places(int(pairs.used[0]) + n_more)
        return pairs if needed <= size else _with_room(pairs, max(needed, size + 2 * size // 5, SMALLEST_ROOM))

    return _over_pairs(state, widen)


def tables_of(state: tuple[Any, ...]) -> Iterator[Pairs]:
    """The tables of pairs in a state."""
    for value in (state,) if isinstance(state, Pairs) else state:
        if isinstance(value, Pairs):
            yield value
        elif isinstance(value, tuple):
            yield from tables_of(value)


def places_left_by_joining(state: tuple[Any, ...], user: int, other: int) -> int:
    """Upper bound of the places in a table of pairs that become unusable when these two users are joined."""
    lengths = ((_length(pairs, user), _length(pairs, other)) for pairs in tables_of(state))
    return max((own // KEPT + min(own, theirs) for own, theirs in lengths), default=0)


def tidied(state: State) -> State:
    """The same without unusable places."""
    return _over_pairs(state, _in_order)


def copied_into(larger: State, state: tuple[Any, ...]) -> State:
    """The contents of `state`, copied into the first rows of a larger state of the same type."""
    if isinstance(larger, Pairs) and isinstance(state, Pairs):
        larger = _with_room(larger, state.items.size)  # type: ignore[assignment]
    for name, target, source in zip(larger._fields, larger, state, strict=True):  # type: ignore[attr-defined]
        if isinstance(target, tuple):
            larger = larger._replace(**{name: copied_into(target, source)})  # type: ignore[attr-defined]
        else:
            target[tuple(slice(0, length) for length in source.shape)] = source
    return larger


def restored(blank: State, arrays: dict[str, NDArray[Any]], prefix: str = "") -> State:
    """A state like `blank` that holds the given flattened arrays."""
    values: dict[str, Any] = {}
    for name, value in zip(blank._fields, blank, strict=True):  # type: ignore[attr-defined]
        if isinstance(value, tuple):
            values[name] = restored(value, arrays, f"{prefix}{name}.")
            continue
        found = arrays.get(prefix + name)
        elastic = isinstance(blank, Pairs) and name not in ("first", "used")
        if found is None or found.dtype != value.dtype or (found.shape != value.shape and not elastic):
            given = "missing" if found is None else f"{found.dtype}{list(found.shape)}"
            raise InvalidInput(f"snapshot: array {prefix + name!r} is {given}; expected {value.dtype}{list(value.shape)}")
        copy = np.array(found, order="F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C")
        values[name] = copy.view(value.dtype)  # a file does not store that the fields of a record are read as attributes
    return blank._replace(**values)  # type: ignore[attr-defined, no-any-return]


def _with_room(pairs: Pairs, room: int) -> Pairs:
    used = int(pairs.used[1])

    def widened(array: NDArray[Any]) -> NDArray[Any]:
        wider = np.zeros(room, array.dtype)
        wider[:used] = array[:used]
        return wider

    return pairs._replace(**{name: widened(getattr(pairs, name)) for name in ("following", "items", "plays", "totals")})


def _in_order(pairs: Pairs) -> Pairs:
    """The same chains, ordered by user and without reserved places: independent of where entries are stored."""
    ranks = list(_ranks(pairs))
    lengths = np.zeros(pairs.first.size, np.int64)
    for users, _ in ranks:
        lengths[users] += 1
    ends, rated = np.cumsum(lengths), lengths > 0
    starts = ends - lengths
    order = np.empty(lengths.sum(), np.int32)
    for rank, (users, entries) in enumerate(ranks):
        order[starts[users] + rank] = entries
    first, following = np.where(rated, starts, NOTHING).astype(np.int32), np.arange(1, order.size + 1, dtype=np.int32)
    following[ends[rated] - 1] = NOTHING
    return Pairs(first, following, pairs.items[order], pairs.plays[order], pairs.totals[order], np.full(2, order.size))


def _ranks(pairs: Pairs) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """The first entry of every user, then the second of those who have one, and so on."""
    users = np.flatnonzero(pairs.first != NOTHING).astype(np.int32)
    entries = pairs.first[users]
    while users.size:
        yield users, entries
        entries = pairs.following[entries]
        going = entries != NOTHING
        if not going.all():
            users, entries = users[going], entries[going]


def _length(pairs: Pairs, user: int) -> int:
    count, entry = 0, int(pairs.first[user])
    while entry != NOTHING:
        count, entry = count + 1, int(pairs.following[entry])
    return count


def _over_pairs(state: State, change: Callable[[Pairs], Pairs]) -> State:
    if isinstance(state, Pairs):
        return change(state)  # type: ignore[return-value]
    nested = {
        name: _over_pairs(value, change)
        for name, value in zip(state._fields, state, strict=True)  # type: ignore[attr-defined]
        if isinstance(value, tuple)
    }
    changed = any(value is not getattr(state, name) for name, value in nested.items())
    return state._replace(**nested) if changed else state  # type: ignore[attr-defined]
