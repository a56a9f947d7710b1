"""Sixteen items side by side, written for the machine's vector units: the inner loop of scoring.

By default the compiler writes sums to memory and reads them back once per term. Here they stay in registers, which takes half the time
and compiles faster. Each lane adds its terms in the same order as the interpreted version, so the bits are the same on any vector
width.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from albatross.kernels.asking import emit_ask
from albatross.kernels.written_out import PACKED, SIZE

write: Any = cgutils  # it has no type hints

LANES = 16
"""Items at a time: four vector registers of 256 bits, enough independent sums to hide the latency of an addition."""

LINE = 8
"""Numbers in a line of memory."""

AHEAD = 16 * LANES
"""Items that pass before what is asked for arrives from main memory, even if their vectors are short."""

NUMBERS = ir.VectorType(ir.DoubleType(), LANES)
ZEROS = NUMBERS([0.0] * LANES)
_PLACES = ir.VectorType(ir.IntType(32), LANES)


class Emitter:
    """Emits instructions on values that hold all lanes."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder = context, builder
        self.types = dict(zip(arguments, signature.args, strict=True))
        if any(kind.layout != "C" for kind in signature.args if isinstance(kind, types.Array)):
            raise TypeError(f"lanes are neighbours in memory; accepted: contiguous rows, given {signature}")

    def pointer(self, array: Any, *indices: Any) -> Any:
        kind = self.types[array]
        structure = self.context.make_array(kind)(self.context, self.builder, array)
        return write.get_item_pointer(self.context, self.builder, kind, structure, indices)

    def length(self, vector: Any) -> Any:
        structure = self.context.make_array(self.types[vector])(self.context, self.builder, vector)
        return write.unpack_tuple(self.builder, structure.shape, 1)[0]

    def spread(self, number: Any) -> Any:
        """The same number in every lane."""
        single = self.builder.insert_element(NUMBERS(ir.Undefined), number, _PLACES.element(0))
        return self.builder.shuffle_vector(single, NUMBERS(ir.Undefined), _PLACES([0] * LANES))

    def store(self, numbers: Any, vector: Any, target: Any) -> None:
        place = self.builder.bitcast(self.pointer(vector, target), NUMBERS.as_pointer())
        self.builder.store(numbers, place, align=8)

    def project(self, weights: Any, row: tuple[Any, ...], length: Any, coordinates: Any, start: Any, first: Any = None) -> Any:
        """Σ weights · coordinates, from the `first` coordinate on."""
        builder, total = self.builder, write.alloca_once(self.builder, NUMBERS)
        builder.store(ZEROS, total)
        with write.for_range(builder, length) as loop:
            weight = self.spread(builder.load(self.pointer(weights, *row, loop.index)))
            number = loop.index if first is None else builder.add(loop.index, first)
            place = builder.bitcast(self.pointer(coordinates, number, start), NUMBERS.as_pointer())
            term = builder.fmul(weight, builder.load(place, align=8))
            builder.store(builder.fadd(builder.load(total), term), total)
        return builder.load(total)

    def load(self, vector: Any, start: Any) -> Any:
        return self.builder.load(self.builder.bitcast(self.pointer(vector, start), NUMBERS.as_pointer()), align=8)

    def ask_ahead(self, coordinates: Any, row: Any, start: Any) -> None:
        """Ask for a coordinate of items that come soon. A processor foresees few columns at a time by itself, and there may be many."""
        for line in range(0, LANES, LINE):
            place = self.pointer(coordinates, row, start)
            emit_ask(self.builder, self.builder.gep(place, [start.type(AHEAD + line)]))

    def root(self, numbers: Any) -> Any:
        return self._call("sqrt", numbers)

    def size(self, numbers: Any) -> Any:
        """Absolute values."""
        return self._call("fabs", numbers)

    def _call(self, name: str, numbers: Any) -> Any:
        kind = ir.FunctionType(NUMBERS, [NUMBERS])
        return self.builder.call(write.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{LANES}f64"), [numbers])


def _projection(context, coordinates, start, weights, result, target):  # type: ignore[no-untyped-def]
    """Code for `project_lanes`."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        coordinates, start, weights, result, target = arguments
        emitter = Emitter(context, builder, signature, arguments)
        emitter.store(emitter.project(weights, (), emitter.length(weights), coordinates, start), result, target)
        return context.get_dummy_value()

    return types.void(coordinates, start, weights, result, target), emit


def _scores(context, coordinates, start, center, whitener, radius, scores, means, target):  # type: ignore[no-untyped-def]
    """Code for `score_lanes`."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        coordinates, start, center, whitener, radius, scores, means, target = arguments
        emitter = Emitter(context, builder, signature, arguments)
        rank = emitter.length(center)
        squares = write.alloca_once_value(builder, ZEROS)
        with write.for_range(builder, rank) as loop:
            emitter.ask_ahead(coordinates, loop.index, start)
            projection = emitter.project(whitener, (loop.index,), builder.add(loop.index, loop.index.type(1)), coordinates, start)
            builder.store(builder.fadd(builder.load(squares), builder.fmul(projection, projection)), squares)
        mean = emitter.project(center, (), rank, coordinates, start)
        bonus = builder.fmul(emitter.spread(radius), emitter.root(builder.load(squares)))
        emitter.store(mean, means, target)
        emitter.store(builder.fadd(mean, bonus), scores, target)
        return context.get_dummy_value()

    return types.void(coordinates, start, center, whitener, radius, scores, means, target), emit


def _measures(context, coordinates, start, center, whitener, weights, squares, means, seconds, target):  # type: ignore[no-untyped-def]
    """What `measure_lanes` says, with everything in registers where there are `SIZE` coordinates."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        coordinates, start, center, whitener, weights, squares, means, seconds, target = arguments
        emitter = Emitter(context, builder, signature, arguments)
        size = emitter.length(center)

        def row(number: Any) -> Any:
            place = builder.bitcast(emitter.pointer(coordinates, number, start), NUMBERS.as_pointer())
            return builder.load(place, align=8)

        def finish(square: Any, mean: Any, second: Any, one: Any, offset: Any) -> None:
            met = builder.fcmp_ordered(">", one, ZEROS)
            emitter.store(builder.select(met, square, NUMBERS([-1.0] * LANES)), squares, target)
            emitter.store(builder.fadd(mean, offset), means, target)
            emitter.store(second, seconds, target)

        with builder.if_else(builder.icmp_unsigned("==", size, size.type(SIZE))) as (known, any_size):
            with known:
                first, last = SIZE * (SIZE - 1) // 2, SIZE * (SIZE + 1) // 2
                number = size.type
                own = [row(number(first + a)) for a in range(SIZE)]
                square = mean = second = ZEROS
                for a in range(SIZE):
                    projection = ZEROS
                    for b in range(a + 1):
                        weight = emitter.spread(builder.load(emitter.pointer(whitener, number(a), number(b))))
                        projection = builder.fadd(projection, builder.fmul(weight, own[b]))
                    square = builder.fadd(square, builder.fmul(projection, projection))
                for a in range(SIZE - 1):
                    weight = emitter.spread(builder.load(emitter.pointer(center, number(a))))
                    mean = builder.fadd(mean, builder.fmul(weight, own[a]))
                for a in [*range(first), *range(last, PACKED - 2), PACKED - 1]:  # what stands beside the one has no weight
                    weight = emitter.spread(builder.load(emitter.pointer(weights, number(a))))
                    second = builder.fadd(second, builder.fmul(weight, row(number(a))))
                finish(square, mean, second, own[SIZE - 1], row(number(PACKED - 2)))
            with any_size:
                one = builder.udiv(builder.mul(size, builder.sub(size, size.type(1))), size.type(2))
                total = write.alloca_once_value(builder, ZEROS)
                with write.for_range(builder, size) as loop:
                    length = builder.add(loop.index, size.type(1))
                    projection = emitter.project(whitener, (loop.index,), length, coordinates, start, one)
                    builder.store(builder.fadd(builder.load(total), builder.fmul(projection, projection)), total)
                mean = emitter.project(center, (), builder.sub(size, size.type(1)), coordinates, start, one)
                packed = emitter.length(weights)
                second = emitter.project(weights, (), packed, coordinates, start)
                met = builder.sub(builder.add(one, size), size.type(1))
                finish(builder.load(total), mean, second, row(met), row(builder.sub(packed, size.type(2))))
        return context.get_dummy_value()

    return types.void(coordinates, start, center, whitener, weights, squares, means, seconds, target), emit


def _columns(context, rows, numbers, start, block):  # type: ignore[no-untyped-def]
    """What `turn_lanes` says: four coordinates of four rows at a time, turned within registers."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        rows, numbers, start, block = arguments
        emitter = Emitter(context, builder, signature, arguments)
        quad, integer = ir.VectorType(ir.DoubleType(), 4), start.type
        structure = context.make_array(signature.args[0])(context, builder, rows)
        n_columns = write.unpack_tuple(builder, structure.shape, 2)[1]
        whole = builder.and_(n_columns, integer(-4))
        places = []
        for lane in range(LANES):
            number = builder.load(emitter.pointer(numbers, builder.add(start, integer(lane))))
            places.append(emitter.pointer(rows, builder.zext(number, integer), integer(0)))

        def shuffled(left: Any, right: Any, order: list[int]) -> Any:
            return builder.shuffle_vector(left, right, ir.VectorType(ir.IntType(32), len(order))(order))

        with write.for_range_slice(builder, integer(0), whole, integer(4)) as (column, _):
            quads = [builder.load(builder.bitcast(builder.gep(place, [column]), quad.as_pointer()), align=8) for place in places]
            turned: list[list[Any]] = [[], [], [], []]
            for first in range(0, LANES, 4):
                one, two, three, four = quads[first : first + 4]
                even = shuffled(one, two, [0, 4, 2, 6]), shuffled(three, four, [0, 4, 2, 6])
                odd = shuffled(one, two, [1, 5, 3, 7]), shuffled(three, four, [1, 5, 3, 7])
                for which, (low, high) in enumerate((even, odd)):
                    turned[which].append(shuffled(low, high, [0, 1, 4, 5]))
                    turned[which + 2].append(shuffled(low, high, [2, 3, 6, 7]))
            for which, parts in enumerate(turned):
                low, high = shuffled(parts[0], parts[1], list(range(8))), shuffled(parts[2], parts[3], list(range(8)))
                lanes = shuffled(low, high, list(range(LANES)))
                place = emitter.pointer(block, builder.add(column, integer(which)), integer(0))
                builder.store(lanes, builder.bitcast(place, NUMBERS.as_pointer()), align=8)
        with write.for_range_slice(builder, whole, n_columns, integer(1)) as (column, _):
            for lane, place in enumerate(places):
                builder.store(builder.load(builder.gep(place, [column])), emitter.pointer(block, column, integer(lane)))
        return context.get_dummy_value()

    return types.void(rows, numbers, start, block), emit


emit_projection: Any = intrinsic(_projection)
emit_scores: Any = intrinsic(_scores)
emit_measures: Any = intrinsic(_measures)
emit_columns: Any = intrinsic(_columns)
