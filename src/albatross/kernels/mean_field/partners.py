"""The walk over the items that a user has rated: what they teach about the user, and what a changed user changes in their sums.

A step makes this walk three times or more. By itself the compiler adds each item's moments to sums in memory, and an addition waits for
what the one before has written. With vectors of the default length, the sums, or the change, stay in registers from the first item to the
last. Each number is found by the operations of the loops, in their order.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from albatross.kernels.compiling import OPTIONS, kernel
from albatross.kernels.linear import Matrix, Vector
from albatross.kernels.operations import Items
from albatross.kernels.pairs import NOTHING
from albatross.kernels.written_out import CHUNK, PACKED, SIZE, Writer, add_scaled

write: Any = cgutils  # it has no type hints

_NUMBER = ir.DoubleType()
_ONE = SIZE * (SIZE - 1) // 2
"""Where the row of the one begins: the means of factors and the one itself."""
MOST_UNLIKE = 4.0
"""Limit of the ratio of a click's noise to that of the mean item: the mean of an item with few clicks is known badly."""


@kernel
def pair_weight(share: float, plays: int) -> float:
    """The weight of a pair's mean of `plays` ratings in the model, in units of one rating: s² / (τ² + σ² / plays)."""
    return plays / (share * plays + 1.0 - share)


@kernel
def click_weight(share: float, plays: int, mean: float, clicks: float) -> float:
    """The same for fitting a user where all ratings are 0 or 1: p (1 − p) is the noise of a click on an item of mean p.

    `clicks` is that noise for the mean of all ratings. What belongs to the pair itself does not depend on the mean.
    """
    ratio = min(max(mean * (1.0 - mean) / clicks, 1.0 / MOST_UNLIKE), MOST_UNLIKE)
    return plays / (share * plays + (1.0 - share) * ratio)


@kernel
def partners_in_turn(
    entry: int,
    following: Items,
    items: Items,
    plays: Items,
    totals: Vector,
    rows: Matrix,
    share: float,
    origin: float,
    clicks: float,
    sums: Vector,
    rights: Vector,
) -> float:
    """What `sum_partners` says, for vectors of any length."""
    sums.fill(0.0)
    rights.fill(0.0)
    one, offset = rights.size * (rights.size - 1) // 2, sums.size - 2
    squares = 0.0
    while entry != NOTHING:
        moments = rows[items[entry]]
        if clicks > 0.0:
            weight = click_weight(share, plays[entry], origin + moments[offset], clicks)
        else:
            weight = pair_weight(share, plays[entry])
        value = totals[entry] / plays[entry] - origin
        add_scaled(sums, moments, 0, weight)
        add_scaled(rights, moments, one, weight * value)
        squares += weight * value * (value - 2.0 * moments[offset])
        entry = following[entry]
    return squares


def sum_partners(
    entry: int,
    following: Items,
    items: Items,
    plays: Items,
    totals: Vector,
    rows: Matrix,
    share: float,
    origin: float,
    clicks: float,
    sums: Vector,
    rights: Vector,
) -> float:
    """Over the pairs from `entry` on, with w the weight and y the mean rating from `origin` on:

    sums = Σ w E[z zᵀ], rights = Σ w y E[(f, 1)]; returns Σ w (y² − 2 y E[o]). `clicks`: as for `click_weight`, or zero.
    """
    return partners_in_turn(entry, following, items, plays, totals, rows, share, origin, clicks, sums, rights)


@kernel
def tell_in_turn(
    entry: int,
    following: Items,
    items: Items,
    plays: Items,
    totals: Vector,
    change: Vector,
    share: float,
    origin: float,
    sums: Matrix,
    rights: Matrix,
) -> None:
    """What `tell_partners` says, for vectors of any length."""
    one = rights.shape[1] * (rights.shape[1] - 1) // 2
    while entry != NOTHING:
        weight = pair_weight(share, plays[entry])
        value = totals[entry] / plays[entry] - origin
        add_scaled(sums[items[entry]], change, 0, weight)
        add_scaled(rights[items[entry]], change, one, weight * value)
        entry = following[entry]


def tell_partners(
    entry: int,
    following: Items,
    items: Items,
    plays: Items,
    totals: Vector,
    change: Vector,
    share: float,
    origin: float,
    sums: Matrix,
    rights: Matrix,
) -> None:
    """Add what has changed in the moments of a user to the sums and rights of the items, over the pairs from `entry` on."""
    tell_in_turn(entry, following, items, plays, totals, change, share, origin, sums, rights)


class _Walk(Writer):
    """Writes a walk over the pairs of a user, with rows in pieces of up to CHUNK numbers."""

    whole = tuple((start, min(CHUNK, PACKED - start)) for start in range(0, PACKED, CHUNK))
    """The pieces of packed moments: where each begins, and its length."""
    ones = tuple((start, min(CHUNK, _ONE + SIZE - start)) for start in range(_ONE, _ONE + SIZE, CHUNK))
    """The pieces of the row of the one."""

    def piece(self, row: Any, start: int, length: int) -> Any:
        """Where a piece is in memory."""
        place = self.builder.gep(row, [ir.IntType(64)(start)])
        return self.builder.bitcast(place, ir.VectorType(_NUMBER, length).as_pointer())

    def pieces(self, row: Any, cut: tuple[tuple[int, int], ...], first: int = 0) -> list[Any]:
        """The pieces of a row that begins with the number `first`."""
        return [self.builder.load(self.piece(row, start - first, length), align=8) for start, length in cut]

    def plus_scaled(self, numbers: Any, factor: Any, more: Any) -> Any:
        """Numbers + factor · more"""
        builder, kind, places = self.builder, more.type, ir.VectorType(ir.IntType(32), more.type.count)
        single = builder.insert_element(kind(ir.Undefined), factor, places.element(0))
        factors = builder.shuffle_vector(single, kind(ir.Undefined), places([0] * kind.count))
        return builder.fadd(numbers, builder.fmul(factors, more))

    @contextmanager
    def each_pair(self, entry: Any, following: Any, items: Any, plays: Any, totals: Any, share: Any, origin: Any) -> Iterator[Any]:
        """The item of each pair, its weight, and its weight times its mean rating from the origin on, and that rating."""
        builder, wide = self.builder, ir.IntType(64)
        current = write.alloca_once_value(builder, builder.sext(entry, wide))
        test, body, end = (builder.append_basic_block(name) for name in ("pairs.test", "pairs.body", "pairs.end"))
        builder.branch(test)
        builder.position_at_end(test)
        here = builder.load(current)
        builder.cbranch(builder.icmp_signed("!=", here, wide(NOTHING)), body, end)
        builder.position_at_end(body)
        builder.store(builder.sext(self.load(following, here), wide), current)
        count = builder.sitofp(self.load(plays, here), _NUMBER)
        weight = builder.fdiv(count, builder.fsub(builder.fadd(builder.fmul(share, count), _NUMBER(1.0)), share))
        value = builder.fsub(builder.fdiv(self.load(totals, here), count), origin)
        yield builder.zext(self.load(items, here), wide), weight, builder.fmul(weight, value), value
        builder.branch(test)
        builder.position_at_end(end)


def _sum(context, entry, following, items, plays, totals, rows, share, origin, sums, rights):  # type: ignore[no-untyped-def]
    """What `sum_partners` says."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        entry, following, items, plays, totals, rows, share, origin, sums, rights = arguments
        walk = _Walk(context, builder, signature, arguments)
        cut = (*walk.whole, *walk.ones)
        totalled = [write.alloca_once_value(builder, ir.VectorType(_NUMBER, length)([0.0] * length)) for _, length in cut]
        squares = write.alloca_once_value(builder, _NUMBER(0.0))
        with walk.each_pair(entry, following, items, plays, totals, share, origin) as (item, weight, weighted, value):
            row = walk.place(rows, item, 0)
            factors = [weight] * len(walk.whole) + [weighted] * len(walk.ones)
            for total, factor, piece in zip(totalled, factors, walk.pieces(row, cut), strict=True):
                builder.store(walk.plus_scaled(builder.load(total), factor, piece), total)
            twice = builder.fmul(_NUMBER(2.0), builder.load(builder.gep(row, [ir.IntType(64)(PACKED - 2)])))
            square = builder.fmul(weighted, builder.fsub(value, twice))
            builder.store(builder.fadd(builder.load(squares), square), squares)
        targets = [walk.piece(walk.place(sums, 0), *piece) for piece in walk.whole]
        targets += [walk.piece(walk.place(rights, 0), start - _ONE, length) for start, length in walk.ones]
        for total, target in zip(totalled, targets, strict=True):
            builder.store(builder.load(total), target, align=8)
        return builder.load(squares)

    return types.float64(entry, following, items, plays, totals, rows, share, origin, sums, rights), emit


def _tell(context, entry, following, items, plays, totals, change, share, origin, sums, rights):  # type: ignore[no-untyped-def]
    """What `tell_partners` says."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        entry, following, items, plays, totals, change, share, origin, sums, rights = arguments
        walk = _Walk(context, builder, signature, arguments)
        changes = [(walk.pieces(walk.place(change, 0), cut), cut) for cut in (walk.whole, walk.ones)]
        with walk.each_pair(entry, following, items, plays, totals, share, origin) as (item, weight, weighted, _):
            for target, factor, first, (more, cut) in zip((sums, rights), (weight, weighted), (0, _ONE), changes, strict=True):
                row = walk.place(target, item, 0)
                before = walk.pieces(row, cut, first)
                for (start, length), numbers, change_of_piece in zip(cut, before, more, strict=True):
                    builder.store(walk.plus_scaled(numbers, factor, change_of_piece), walk.piece(row, start - first, length), align=8)
        return context.get_dummy_value()

    return types.void(entry, following, items, plays, totals, change, share, origin, sums, rights), emit


_emit_sum: Callable[..., float] = intrinsic(_sum)
_emit_tell: Callable[..., None] = intrinsic(_tell)


@overload(sum_partners, jit_options=OPTIONS, strict=False)
def _compiled_sum_partners(entry, following, items, plays, totals, rows, share, origin, clicks, sums, rights):  # type: ignore[no-untyped-def]
    def compiled(entry, following, items, plays, totals, rows, share, origin, clicks, sums, rights):  # type: ignore[no-untyped-def]
        if rights.size == SIZE and clicks == 0.0:
            return _emit_sum(entry, following, items, plays, totals, rows, share, origin, sums, rights)
        return partners_in_turn(entry, following, items, plays, totals, rows, share, origin, clicks, sums, rights)

    return compiled


@overload(tell_partners, jit_options=OPTIONS, strict=False)
def _compiled_tell_partners(entry, following, items, plays, totals, change, share, origin, sums, rights):  # type: ignore[no-untyped-def]
    def compiled(entry, following, items, plays, totals, change, share, origin, sums, rights):  # type: ignore[no-untyped-def]
        if rights.shape[1] == SIZE:
            _emit_tell(entry, following, items, plays, totals, change, share, origin, sums, rights)
        else:
            tell_in_turn(entry, following, items, plays, totals, change, share, origin, sums, rights)

    return compiled
