"""Small linear algebra of a known size, written out instruction by instruction.

The compiler cannot know that a matrix has six rows. It makes loops of one to five turns, each waiting for what the one before wrote to
memory. Written out, everything stays in registers. Each number is found by the operations of the loops in `albatross.kernels.linear`, in
their order, so the bits are the same.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from albatross.kernels.compiling import OPTIONS
from albatross.kernels.linear import RESOLUTION, Matrix, Vector

write: Any = cgutils  # it has no type hints

SIZE = 6
"""Rows of what is written out: vectors of the default length, 5, and an offset."""

PACKED = (SIZE + 1) * (SIZE + 2) // 2
"""Numbers in the packed moments of who has so many coefficients, and a one."""

CHUNK = 4
"""Numbers that are added at once: a vector register of 256 bits."""

_NUMBER = ir.DoubleType()


class Writer:
    """Writes instructions on numbers, and on arrays whose elements are neighbours in memory."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder = context, builder
        if any(kind.layout != "C" for kind in signature.args if isinstance(kind, types.Array)):
            raise TypeError(f"elements must be neighbours in memory; accepted: contiguous arrays, given {signature}")
        self.types = dict(zip(arguments, signature.args, strict=True))

    def place(self, array: Any, *indices: Any) -> Any:
        kind = self.types[array]
        structure = self.context.make_array(kind)(self.context, self.builder, array)
        places = [self.context.get_constant(types.intp, index) if isinstance(index, int) else index for index in indices]
        return write.get_item_pointer(self.context, self.builder, kind, structure, places)

    def load(self, array: Any, *indices: Any) -> Any:
        return self.builder.load(self.place(array, *indices))

    def store(self, number: Any, array: Any, *indices: Any) -> None:
        self.builder.store(number, self.place(array, *indices))

    def length(self, vector: Any) -> Any:
        structure = self.context.make_array(self.types[vector])(self.context, self.builder, vector)
        return write.unpack_tuple(self.builder, structure.shape, 1)[0]

    def call(self, name: str, *numbers: Any) -> Any:
        kind = ir.FunctionType(_NUMBER, [_NUMBER] * len(numbers))
        return self.builder.call(write.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.f64"), numbers)

    def at_least(self, number: Any, least: Any, comparison: str) -> Any:
        """The number, or `least` where it does not compare: also where it is not a number."""
        return self.builder.select(self.builder.fcmp_ordered(comparison, number, least), number, least)

    def plus_products(self, number: Any, pairs: list[tuple[Any, Any]]) -> Any:
        """Number + Σ products, one after the other."""
        for left, right in pairs:
            number = self.builder.fadd(number, self.builder.fmul(left, right))
        return number

    def less_products(self, number: Any, pairs: list[tuple[Any, Any]]) -> Any:
        """Number − Σ products, one after the other."""
        for left, right in pairs:
            number = self.builder.fsub(number, self.builder.fmul(left, right))
        return number


def _fit(context, sums, rights, variance, center, noise, whitener, mean):  # type: ignore[no-untyped-def]
    """What `fitted_at_once` says."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        sums, rights, variance, center, noise, whitener, mean = arguments
        writer = Writer(context, builder, signature, arguments)
        last = SIZE * (SIZE + 1) // 2
        values: dict[tuple[int, int], Any] = {}
        factor: dict[tuple[int, int], Any] = {}
        inverse: dict[tuple[int, int], Any] = {}
        right: list[Any] = []
        for a in range(SIZE):
            row = a * (a + 1) // 2
            ridge = builder.fdiv(noise, writer.load(variance, a))
            diagonal = pivot = builder.fadd(writer.load(sums, row + a), ridge)
            right.append(builder.fsub(writer.load(rights, a), writer.load(sums, last + a)))
            if a == SIZE - 1:
                right[a] = builder.fadd(right[a], builder.fmul(ridge, center))
            for b in range(a):
                values[a, b] = writer.less_products(writer.load(sums, row + b), [(values[a, c], factor[b, c]) for c in range(b)])
                factor[a, b] = builder.fdiv(values[a, b], factor[b, b])
                pivot = writer.less_products(pivot, [(values[a, b], factor[a, b])])
            least = builder.fmul(ir.Constant(_NUMBER, RESOLUTION), writer.call("fabs", diagonal))
            least = writer.at_least(least, builder.fmul(ir.Constant(_NUMBER, 0.5), ridge), ">")
            factor[a, a] = writer.at_least(pivot, least, ">=")
            for b in range(a):
                value = writer.plus_products(factor[a, b], [(factor[a, c], inverse[c, b]) for c in range(b + 1, a)])
                inverse[a, b] = builder.fneg(value)
        solved = []
        for a in range(SIZE):
            value = writer.plus_products(right[a], [(inverse[a, b], right[b]) for b in range(a)])
            solved.append(builder.fdiv(value, factor[a, a]))
        for a in range(SIZE):
            writer.store(writer.plus_products(solved[a], [(inverse[b, a], solved[b]) for b in range(a + 1, SIZE)]), mean, a)
            scale = builder.fdiv(ir.Constant(_NUMBER, 1.0), writer.call("sqrt", factor[a, a]))
            for b in range(a):
                writer.store(builder.fmul(inverse[a, b], scale), whitener, a, b)
            writer.store(scale, whitener, a, a)
        return context.get_dummy_value()

    return types.void(sums, rights, variance, center, noise, whitener, mean), emit


def _products(context, whitener, mean, noise, moments):  # type: ignore[no-untyped-def]
    """What `described_at_once` says."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        whitener, mean, noise, moments = arguments
        writer = Writer(context, builder, signature, arguments)
        inverse = {(a, b): writer.load(whitener, a, b) for a in range(SIZE) for b in range(a + 1)}
        means = [writer.load(mean, a) for a in range(SIZE)]
        one, last = SIZE * (SIZE - 1) // 2, SIZE * (SIZE + 1) // 2
        for a in range(SIZE):
            row = a * (a + 1) // 2 if a < SIZE - 1 else last
            for b in range(a + 1):
                covariance = writer.plus_products(ir.Constant(_NUMBER, 0.0), [(inverse[c, a], inverse[c, b]) for c in range(a, SIZE)])
                moment = builder.fadd(builder.fmul(means[a], means[b]), builder.fmul(noise, covariance))
                writer.store(moment, moments, row + (b if b < SIZE - 1 else SIZE))
            if a < SIZE - 1:
                writer.store(means[a], moments, one + a)
        writer.store(means[SIZE - 1], moments, last + SIZE - 1)
        writer.store(ir.Constant(_NUMBER, 1.0), moments, one + SIZE - 1)
        return context.get_dummy_value()

    return types.void(whitener, mean, noise, moments), emit


def _certain(context, mean, moments):  # type: ignore[no-untyped-def]
    """What `certain_at_once` says."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        mean, moments = arguments
        writer = Writer(context, builder, signature, arguments)
        means = [writer.load(mean, a) for a in range(SIZE)]
        known = [*means[:-1], ir.Constant(_NUMBER, 1.0), means[-1]]
        for a, left in enumerate(known):
            for b, right in enumerate(known[: a + 1]):
                product = left if b == SIZE - 1 else right if a == SIZE - 1 else builder.fmul(right, left)
                writer.store(product, moments, a * (a + 1) // 2 + b)
        return context.get_dummy_value()

    return types.void(mean, moments), emit


def _weights(context, moments, weights):  # type: ignore[no-untyped-def]
    """What `weighted_at_once` says."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        moments, weights = arguments
        writer = Writer(context, builder, signature, arguments)
        number = [writer.load(moments, place) for place in range(PACKED)]
        twice = [builder.fmul(ir.Constant(_NUMBER, 2.0), each) for each in number]
        one, last = SIZE * (SIZE - 1) // 2, SIZE * (SIZE + 1) // 2
        diagonal = [a * (a + 3) // 2 for a in range(SIZE - 1)]
        found = [number[place] if place in diagonal else twice[place] for place in range(one)]
        found += [twice[last + a] for a in range(SIZE - 1)] + [number[last + SIZE]]
        found += [twice[one + a] for a in range(SIZE - 1)] + [twice[last + SIZE - 1], ir.Constant(_NUMBER, 1.0)]
        for place, weight in enumerate(found):
            writer.store(weight, weights, place)
        return context.get_dummy_value()

    return types.void(moments, weights), emit


def _sum(context, target, source, start, factor):  # type: ignore[no-untyped-def]
    """What `add_scaled` says: chunk by chunk, and the rest number by number."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        target, source, start, factor = arguments
        writer = Writer(context, builder, signature, arguments)
        places = ir.VectorType(ir.IntType(32), CHUNK)
        kind = ir.VectorType(_NUMBER, CHUNK)
        single = builder.insert_element(kind(ir.Undefined), factor, places.element(0))
        factors = builder.shuffle_vector(single, kind(ir.Undefined), places([0] * CHUNK))
        length = writer.length(target)
        to, of = writer.place(target, 0), writer.place(source, start)

        def add(place: Any, chunk: bool) -> None:
            numbers = [builder.gep(pointer, [place]) for pointer in (to, of)]
            if chunk:
                numbers = [builder.bitcast(pointer, kind.as_pointer()) for pointer in numbers]
            before, more = (builder.load(pointer, align=8) for pointer in numbers)
            builder.store(builder.fadd(before, builder.fmul(factors if chunk else factor, more)), numbers[0], align=8)

        def add_all(size: int) -> None:
            whole = size - size % CHUNK
            for place in range(0, whole, CHUNK):
                add(length.type(place), chunk=True)
            for place in range(whole, size):
                add(length.type(place), chunk=False)

        with builder.if_else(builder.icmp_unsigned("==", length, length.type(PACKED))) as (many, other):
            with many:
                add_all(PACKED)
            with other, builder.if_else(builder.icmp_unsigned("==", length, length.type(SIZE))) as (few, any_number):
                with few:
                    add_all(SIZE)
                with any_number:
                    whole = builder.and_(length, length.type(-CHUNK))
                    with write.for_range_slice(builder, length.type(0), whole, length.type(CHUNK)) as (place, _):
                        add(place, chunk=True)
                    with write.for_range_slice(builder, whole, length, length.type(1)) as (place, _):
                        add(place, chunk=False)
        return context.get_dummy_value()

    return types.void(target, source, start, factor), emit


emit_fit: Callable[..., None] = intrinsic(_fit)
emit_products: Callable[..., None] = intrinsic(_products)
emit_certain: Callable[..., None] = intrinsic(_certain)
emit_weights: Callable[..., None] = intrinsic(_weights)
emit_sum: Callable[..., None] = intrinsic(_sum)


def fitted_at_once(sums: Vector, rights: Vector, variance: Vector, center: float, noise: float, whitener: Matrix, mean: Vector) -> bool:
    """Do what `albatross.kernels.mean_field.moments.fit` does, if that is written out."""
    return False


def described_at_once(whitener: Matrix, mean: Vector, noise: float, moments: Vector) -> bool:
    """Find the moments of who has this mean and the covariance noise · whitenerᵀ whitener, if that is written out."""
    return False


def certain_at_once(mean: Vector, moments: Vector) -> bool:
    """Do what `albatross.kernels.mean_field.moments.certain` does, if that is written out."""
    return False


def weighted_at_once(moments: Vector, size: int, weights: Vector) -> bool:
    """Do what `albatross.kernels.mean_field.moments.partner_weights` does, if that is written out."""
    return False


def add_scaled(target: Vector, source: Vector, start: int, factor: float) -> None:
    """Target += factor · source[start:]"""
    for position in range(target.size):
        target[position] += factor * source[start + position]


@overload(fitted_at_once, jit_options=OPTIONS, strict=False)
def _compiled_fitted_at_once(sums, rights, variance, center, noise, whitener, mean):  # type: ignore[no-untyped-def]
    def compiled(sums, rights, variance, center, noise, whitener, mean):  # type: ignore[no-untyped-def]
        if mean.size == SIZE:
            emit_fit(sums, rights, variance, center, noise, whitener, mean)
        return mean.size == SIZE

    return compiled


@overload(described_at_once, jit_options=OPTIONS, strict=False)
def _compiled_described_at_once(whitener, mean, noise, moments):  # type: ignore[no-untyped-def]
    def compiled(whitener, mean, noise, moments):  # type: ignore[no-untyped-def]
        if mean.size == SIZE:
            emit_products(whitener, mean, noise, moments)
        return mean.size == SIZE

    return compiled


@overload(certain_at_once, jit_options=OPTIONS, strict=False)
def _compiled_certain_at_once(mean, moments):  # type: ignore[no-untyped-def]
    def compiled(mean, moments):  # type: ignore[no-untyped-def]
        if mean.size == SIZE:
            emit_certain(mean, moments)
        return mean.size == SIZE

    return compiled


@overload(weighted_at_once, jit_options=OPTIONS, strict=False)
def _compiled_weighted_at_once(moments, size, weights):  # type: ignore[no-untyped-def]
    def compiled(moments, size, weights):  # type: ignore[no-untyped-def]
        if size == SIZE:
            emit_weights(moments, weights)
        return size == SIZE

    return compiled


@overload(add_scaled, jit_options=OPTIONS, strict=False)
def _compiled_add_scaled(target, source, start, factor):  # type: ignore[no-untyped-def]
    def compiled(target, source, start, factor):  # type: ignore[no-untyped-def]
        emit_sum(target, source, start, factor)

    return compiled
