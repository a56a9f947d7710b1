"""The arithmetic limit of the machine: the multiply-adds of scoring, and nothing else.

With ALB, scoring an item of rank k takes k(k + 1)/2 multiply-adds to whiten it, k to square that and k for its mean. Mean-field knows an
offset and a covariance of each item, too: (k + 1)(k + 2)/2 to whiten it, k + 1 to square that, k for its mean, and (k + 1)(k + 2)/2 for the
variance that comes from the item. Here as many are done with the same coordinates in the same layout, each read once, fused, with the
rank known to the compiler, and with all else in registers: no roots, no results to write, no scores to compare. The result is useless,
and nothing that does the same work can be quicker.
"""

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from albatross.kernels.compiling import OPTIONS
from albatross.kernels.search.lanes import LANES
from benchmarks.steps.stepping import new_reading, now

write: Any = cgutils  # it has no type hints

_NUMBERS = ir.VectorType(ir.DoubleType(), LANES)
_PLACES = ir.VectorType(ir.IntType(32), LANES)
N_SUMS = 2
"""Vectors of sums: with LANES numbers each, as many in flight as additions take time, and no more than there are registers."""


def terms_of_alb(rank: int) -> tuple[int, ...]:
    """Multiply-adds per coordinate of an item."""
    return tuple(rank - row + 2 for row in range(rank))


def terms_of_mean_field(rank: int) -> tuple[int, ...]:
    """The same for its moments: the vector, the one, then the second moments."""
    return (*(rank - row + 3 for row in range(rank)), 2, *[1] * ((rank + 1) * (rank + 2) // 2))


@functools.cache
def triad(terms: tuple[int, ...]) -> Callable[..., None]:
    """A compiled function that does this for all items once per moment, and reads the clock before each time and at the end."""
    emit: Any = intrinsic(_triad(terms))

    def repeat(coordinates, weights, sums, moments, reading):  # type: ignore[no-untyped-def]
        for repetition in range(moments.size - 1):
            moments[repetition] = now(reading)
            emit(coordinates, weights, sums)
        moments[-1] = now(reading)

    return numba.njit(**OPTIONS)(repeat)  # type: ignore[no-any-return]


def _triad(terms: tuple[int, ...]) -> Callable[..., Any]:
    def declared(context, coordinates, weights, sums):  # type: ignore[no-untyped-def]
        def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            def pointer(which: int, *indices: int | Any) -> Any:
                kind = signature.args[which]
                array = context.make_array(kind)(context, builder, arguments[which])
                places = [context.get_constant(types.intp, index) if isinstance(index, int) else index for index in indices]
                return write.get_item_pointer(context, builder, kind, array, places)

            def lanes(which: int, *indices: int | Any) -> Any:
                return builder.bitcast(pointer(which, *indices), _NUMBERS.as_pointer())

            def spread(number: Any) -> Any:
                single = builder.insert_element(_NUMBERS(ir.Undefined), number, _PLACES.element(0))
                return builder.shuffle_vector(single, _NUMBERS(ir.Undefined), _PLACES([0] * LANES))

            fused = write.get_or_insert_function(builder.module, ir.FunctionType(_NUMBERS, [_NUMBERS] * 3), f"llvm.fma.v{LANES}f64")
            factors = [spread(builder.load(pointer(1, which))) for which in range(N_SUMS)]
            totals = [write.alloca_once_value(builder, builder.load(lanes(2, which, 0), align=8)) for which in range(N_SUMS)]
            structure = context.make_array(signature.args[0])(context, builder, arguments[0])
            n_items = write.unpack_tuple(builder, structure.shape, 2)[1]
            with write.for_range(builder, builder.udiv(n_items, n_items.type(LANES))) as loop:
                start, turn = builder.mul(loop.index, loop.index.type(LANES)), 0
                for row, n_terms in enumerate(terms):
                    numbers = builder.load(lanes(0, row, start), align=8)
                    for _ in range(n_terms):
                        total = totals[turn % N_SUMS]
                        builder.store(builder.call(fused, [factors[turn % N_SUMS], numbers, builder.load(total)]), total)
                        turn += 1
            for which, total in enumerate(totals):
                builder.store(builder.load(total), lanes(2, which, 0), align=8)
            return context.get_dummy_value()

        return types.void(coordinates, weights, sums), emit

    return declared


def seconds(columns: NDArray[np.float64], terms: tuple[int, ...], repetitions: int) -> NDArray[np.float64]:
    """The time of so many multiply-adds with each column of all items, per repetition."""
    coordinates = columns.T
    moments = np.zeros(repetitions + 1, np.int64)
    sums = np.zeros((N_SUMS, LANES))
    triad(terms)(coordinates, np.linspace(0.1, 0.2, N_SUMS), sums, moments, new_reading(coordinates.shape[1]))
    return 1e-9 * np.diff(moments)
