"""The steps of `valuing` and `choosing` for LANES items side by side: the same operations in the same order."""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic, overload

from albatross.kernels.compiling import OPTIONS
from albatross.kernels.linear import Vector
from albatross.kernels.mean_field.gittins import LOOKS
from albatross.kernels.mean_field.valuing import Reach, Scales, value_items
from albatross.kernels.search.catalogue import SAFETY
from albatross.kernels.search.lanes import LANES, NUMBERS, ZEROS, Emitter, write

_kinds: Any = types  # it has no type hints
_TWO = _kinds.UniTuple(types.float64, 2)


class Numbers:
    """Arithmetic with a number per lane; a plain number is the same in every lane."""

    def __init__(self, emitter: Emitter, value: Any) -> None:
        self.emitter, self.value = emitter, value

    def _with(self, operation: str, left: Any, right: Any) -> "Numbers":
        return Numbers(self.emitter, getattr(self.emitter.builder, operation)(_value(left), _value(right)))

    def __add__(self, other: "Numbers | float") -> "Numbers":
        return self._with("fadd", self, other)

    def __sub__(self, other: "Numbers") -> "Numbers":
        return self._with("fsub", self, other)

    def __mul__(self, other: "Numbers | float") -> "Numbers":
        return self._with("fmul", self, other)

    def __rmul__(self, other: float) -> "Numbers":
        return self._with("fmul", other, self)

    def __truediv__(self, other: "Numbers") -> "Numbers":
        return self._with("fdiv", self, other)

    def root(self) -> "Numbers":
        return Numbers(self.emitter, self.emitter.root(self.value))

    def size(self) -> "Numbers":
        """The absolute value."""
        return Numbers(self.emitter, self.emitter.size(self.value))

    def compares(self, comparison: str, other: "Numbers | float", unordered: bool = False) -> Any:
        """Per lane, the result of the comparison; `unordered` if one of them is NaN."""
        compare = self.emitter.builder.fcmp_unordered if unordered else self.emitter.builder.fcmp_ordered
        return compare(comparison, self.value, _value(other))

    def where(self, condition: Any, otherwise: "Numbers | float") -> "Numbers":
        """These where the condition holds, otherwise the others."""
        return Numbers(self.emitter, self.emitter.builder.select(condition, self.value, _value(otherwise)))


def _value(number: Numbers | float) -> Any:
    return number.value if isinstance(number, Numbers) else NUMBERS([number] * LANES)


def _worth_of(ratio: Numbers, visits: Numbers) -> Numbers:
    """As `gittins.worth_of`."""
    visits, per = visits * ratio, ratio + LOOKS
    root = (visits * per).root()
    above = per * (0.40088 * per + 0.11807 * root) + 2.4757e-4 * root * root
    below = root * (0.038225 * per + 4.9092e-5 * root) + 0.5058 * per * per
    below = root * (root * below + 0.33127 * per * per * per) + per * per * per * per
    q = visits * per * above / below
    return ratio * q * q


def _values(context, squares, seconds, means, scores, start, origin, top, inverse_noise, for_user, for_all, own_part, user_part, item_part):  # type: ignore[no-untyped-def] # fmt: skip
    """The code of `value_lanes`."""
    given = (squares, seconds, means, scores, start, origin, top, inverse_noise, for_user, for_all, own_part, user_part, item_part)

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        squares, seconds, means, scores, start = arguments[:5]
        emitter = Emitter(context, builder, signature, arguments)
        origin, top, inverse_noise, for_user, for_all, own_part, user_part, item_part = (
            Numbers(emitter, emitter.spread(number)) for number in arguments[5:]
        )
        of_user, second, mean = (Numbers(emitter, emitter.load(vector, start)) for vector in (squares, seconds, means))
        spread = second - mean * mean
        of_item = spread.where(spread.compares(">", 0.0), 0.0) * inverse_noise
        square = own_part + user_part * _worth_of(of_user, for_user) + item_part * _worth_of(of_item, for_all)
        mean = mean + origin
        lacking = top - mean
        limit = lacking * lacking
        both = builder.and_(lacking.compares(">", 0.0), square.compares(">", 0.0))
        gain = (square * limit / (square + limit)).root().where(both, 0.0)
        emitter.store(square.value, squares, start)
        emitter.store(mean.value, means, start)
        emitter.store((mean + gain).value, scores, start)
        return context.get_dummy_value()

    return types.void(*given), emit


def _largest(context, squares, seconds, means, n_groups):  # type: ignore[no-untyped-def]
    """The code of `largest_parts`."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        squares, seconds, means, n_groups = arguments
        emitter = Emitter(context, builder, signature, arguments)
        largest = [write.alloca_once_value(builder, ZEROS) for _ in range(2)]

        def larger(one: Any, other: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", one, other), one, other)

        with write.for_range(builder, n_groups) as loop:
            start = builder.mul(loop.index, loop.index.type(LANES))
            mean = Numbers(emitter, emitter.load(means, start))
            spread = Numbers(emitter, emitter.load(seconds, start)) - mean * mean
            for part, found in zip((emitter.load(squares, start), spread.value), largest, strict=True):
                builder.store(larger(part, builder.load(found)), found)
        results = []
        for found in largest:
            numbers, length = builder.load(found), LANES
            while length > 1:
                length //= 2
                halves = [ir.VectorType(ir.IntType(32), length)(list(range(start, start + length))) for start in (0, length)]
                numbers = larger(*(builder.shuffle_vector(numbers, numbers, half) for half in halves))
            results.append(builder.extract_element(numbers, ir.IntType(32)(0)))
        return context.make_tuple(builder, signature.return_type, results)

    return _TWO(squares, seconds, means, n_groups), emit


def _reaching(context, squares, seconds, means, start, origin, top, own_part, of_user, of_item, least, safety):  # type: ignore[no-untyped-def]
    """The code of `may_reach`; `least` is already reduced by the margin for rounding."""
    given = (squares, seconds, means, start, origin, top, own_part, of_user, of_item, least, safety)

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        squares, seconds, means, start = arguments[:4]
        emitter = Emitter(context, builder, signature, arguments)
        origin, top, own_part, of_user, of_item, least, safety = (Numbers(emitter, emitter.spread(number)) for number in arguments[4:])
        shown, second, mean = (Numbers(emitter, emitter.load(vector, start)) for vector in (squares, seconds, means))
        spread = second - mean * mean
        mean = mean + origin
        square = own_part + of_user * shown + of_item * spread.where(spread.compares(">", 0.0), 0.0)
        lacking = top - mean
        missing = least - mean - safety * mean.size()
        room = lacking * lacking
        within = builder.and_(
            lacking.compares(">", 0.0), (square * room).compares(">=", missing * missing * (square + room), unordered=True)
        )
        reaching = builder.and_(shown.compares(">=", 0.0), builder.or_(missing.compares("<=", 0.0), within))
        bits = builder.bitcast(reaching, ir.IntType(LANES))
        return builder.zext(bits, context.get_value_type(types.int64))

    return types.int64(*given), emit


_emit_values: Any = intrinsic(_values)
_emit_largest: Any = intrinsic(_largest)
_emit_reaching: Any = intrinsic(_reaching)


def value_lanes(scales: Scales, squares: Vector, seconds: Vector, means: Vector, scores: Vector) -> None:
    """`value_items` for LANES items that all have ratings."""
    value_items(scales, squares, seconds, means, scores, LANES)


def largest_parts(squares: Vector, seconds: Vector, means: Vector, n_groups: int) -> tuple[float, float]:
    """The largest square, and the largest variance from second moment and mean, of so many times LANES items; at least zero."""
    square = variance = 0.0
    for place in range(LANES * n_groups):
        square = max(square, squares[place])
        variance = max(variance, seconds[place] - means[place] * means[place])
    return square, variance


def may_reach(scales: Scales, reach: Reach, squares: Vector, seconds: Vector, means: Vector, start: int, least: float) -> int:
    """Which of the LANES items from `start` on, unless hidden, may reach this score: a bit per lane.

    Rounding changes a score, and the bound on e², by a few units in the last place. The margin is much larger: the missing part is reduced
    by `SAFETY` times the sizes of score and mean, which is at least `SAFETY` times itself.
    """
    bits = 0
    for lane in range(LANES):
        mean = means[start + lane]
        spread = seconds[start + lane] - mean * mean
        mean += scales.origin
        square = scales.own_part + reach.of_user * squares[start + lane] + reach.of_item * max(spread, 0.0)
        lacking = scales.top - mean
        missing = least - SAFETY * abs(least) - mean - SAFETY * abs(mean)
        room = lacking * lacking
        within = lacking > 0.0 and not square * room < missing * missing * (square + room)
        if squares[start + lane] >= 0.0 and (missing <= 0.0 or within):
            bits |= 1 << lane
    return bits


@overload(value_lanes, jit_options=OPTIONS, strict=False)
def _compiled_value_lanes(scales, squares, seconds, means, scores):  # type: ignore[no-untyped-def]
    def compiled(scales, squares, seconds, means, scores):  # type: ignore[no-untyped-def]
        visits = scales.for_user, scales.for_all
        parts = scales.own_part, scales.user_part, scales.item_part
        _emit_values(squares, seconds, means, scores, 0, scales.origin, scales.top, scales.inverse_noise, *visits, *parts)

    return compiled


@overload(largest_parts, jit_options=OPTIONS, strict=False)
def _compiled_largest_parts(squares, seconds, means, n_groups):  # type: ignore[no-untyped-def]
    def compiled(squares, seconds, means, n_groups):  # type: ignore[no-untyped-def]
        return _emit_largest(squares, seconds, means, n_groups)

    return compiled


@overload(may_reach, jit_options=OPTIONS, strict=False)
def _compiled_may_reach(scales, reach, squares, seconds, means, start, least):  # type: ignore[no-untyped-def]
    def compiled(scales, reach, squares, seconds, means, start, least):  # type: ignore[no-untyped-def]
        common = scales.origin, scales.top, scales.own_part
        return _emit_reaching(squares, seconds, means, start, *common, reach.of_user, reach.of_item, least - SAFETY * abs(least), SAFETY)

    return compiled
