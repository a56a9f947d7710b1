"""What can be done to any policy's state, because a state is a NamedTuple of arrays and of further such tuples."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.kernels.pairs import Pairs

State = TypeVar("State", bound=tuple[Any, ...])


def flatten(state: tuple[Any, ...], prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array of a state with its dotted name, without the unused ends of tables of pairs."""
    if isinstance(state, Pairs):
        state = _with_room(state, int(state.used[0]))
    for name, value in zip(state._fields, state, strict=True):  # type: ignore[attr-defined]
        if isinstance(value, tuple):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def identity(state: tuple[Any, ...]) -> str:
    """A name for exactly what was learned: two states have the same one only if they agree bit for bit."""
    digest = hashlib.blake2b(digest_size=16)
    for name, array in flatten(state):
        digest.update(f"{name} {np.lib.format.dtype_to_descr(array.dtype)} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def reserve(state: State, n_more: int) -> State:
    """The state with room for at least `n_more` further pairs. Grows by doubling, so that the copying stays cheap."""

    def widen(pairs: Pairs) -> Pairs:
        needed = int(pairs.used[0]) + n_more
        return pairs if needed <= pairs.items.size else _with_room(pairs, max(needed, 2 * pairs.items.size))

    return _over_pairs(state, widen)


def copied_into(larger: State, state: tuple[Any, ...]) -> State:
    """What `state` believes, written into the corner of a larger state of the same kind."""
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
        values[name] = copy.view(value.dtype)  # a file does not say that the fields of a record are read as attributes
    return blank._replace(**values)  # type: ignore[attr-defined, no-any-return]


def _with_room(pairs: Pairs, room: int) -> Pairs:
    used = int(pairs.used[0])

    def resized(array: NDArray[Any]) -> NDArray[Any]:
        if room <= array.size:
            return array[:room]
        wider = np.zeros(room, array.dtype)
        wider[:used] = array[:used]
        return wider

    return pairs._replace(**{name: resized(getattr(pairs, name)) for name in ("following", "items", "plays", "totals")})


def _over_pairs(state: State, change: Callable[[Pairs], Pairs]) -> State:
    if isinstance(state, Pairs):
        return change(state)  # type: ignore[return-value]
    nested = {
        name: _over_pairs(value, change)
        for name, value in zip(state._fields, state, strict=True)  # type: ignore[attr-defined]
        if isinstance(value, tuple)
    }
    return state._replace(**nested) if nested else state  # type: ignore[attr-defined]
