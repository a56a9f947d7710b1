"""Algorithm 1 of the paper, line by line: lists with one row per event, slow, over any type of number.

Two readings differ from the print. Line 16 assigns I ∪ {t} instead of I, which leaves out the present step and makes every item
vector zero. s is given instead of the largest row norm of A. Where B_j = 0 the maximizer of line 11 is not unique: it is μ here.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Number = Any
Row = list[Number]


class Arithmetic(NamedTuple):
    """A type of number, and what the operators leave out."""

    number: Callable[[Any], Number]
    sqrt: Callable[[Number], Number]
    log: Callable[[Number], Number]


class Constants(NamedTuple):
    user_ridge: Number
    """λ₁"""
    item_ridge: Number
    """λ₂"""
    noise: Number
    """σ"""
    confidence: Number
    """δ"""
    norm_bound: Number
    """s"""


class Ellipsoid(NamedTuple):
    center: Row
    """μ"""
    gram: list[Row]
    """V"""
    radius: Number
    """c"""


class LiteralALB:
    def __init__(
        self, user_factors: Iterable[Iterable[Any]], item_factors: Iterable[Iterable[Any]], constants: Iterable[Any], arithmetic: Arithmetic
    ) -> None:
        self.arithmetic = arithmetic
        self.constants = Constants(*map(arithmetic.number, constants))
        self.A = [[arithmetic.number(value) for value in row] for row in user_factors]  # line 3
        self.B = [[arithmetic.number(value) for value in row] for row in item_factors]
        self.i: list[int] = []
        self.j: list[int] = []
        self.y: Row = []
        self.X: list[Row] = []
        self.Z: list[Row] = []

    def ellipsoid(self, user: int) -> Ellipsoid:
        """Lines 5 to 9."""
        ridge, rank = self.constants.user_ridge, len(self.B[0])
        past = [event for event in range(len(self.y)) if self.i[event] == user]
        gram = gram_matrix([self.X[event] for event in past], ridge, rank)
        center = solve(gram, weighted_sum([self.y[event] for event in past], [self.X[event] for event in past], rank))
        sqrt, log = self.arithmetic.sqrt, self.arithmetic.log
        volume = sqrt(determinant(gram)) / sqrt(ridge**rank)
        radius = self.constants.noise * sqrt(2 * log(volume / self.constants.confidence)) + sqrt(ridge) * self.constants.norm_bound
        return Ellipsoid(center, gram, radius)

    def scores(self, user: int, candidates: Sequence[int]) -> Row:
        """Line 11: what each candidate promises together with the best vector of the ellipsoid."""
        center, gram, radius = self.ellipsoid(user)
        widths = [self.arithmetic.sqrt(dot(self.B[item], solve(gram, self.B[item]))) for item in candidates]
        return [dot(center, self.B[item]) + radius * width for item, width in zip(candidates, widths, strict=True)]

    def choice(self, user: int, candidates: Sequence[int]) -> int:
        scores = self.scores(user, candidates)
        return candidates[scores.index(max(scores))]

    def learn(self, user: int, item: int, reward: Any) -> None:
        """Lines 11 to 18 for an item already chosen."""
        center, gram, radius = self.ellipsoid(user)
        direction = solve(gram, self.B[item])
        width = self.arithmetic.sqrt(dot(self.B[item], direction))
        stretch = radius / width if width > 0 else width
        self.A[user] = [mean + stretch * part for mean, part in zip(center, direction, strict=True)]
        self.i.append(user)
        self.j.append(item)
        self.y.append(self.arithmetic.number(reward))
        self.X.append(self.B[item])
        self.Z.append(self.A[user])
        self._assign_user(user)
        rated = [event for event in range(len(self.y)) if self.j[event] == item]
        rank = len(self.A[user])
        gram = gram_matrix([self.Z[event] for event in rated], self.constants.item_ridge, rank)
        self.B[item] = solve(gram, weighted_sum([self.y[event] for event in rated], [self.Z[event] for event in rated], rank))
        self._assign_item(item)

    def adopt(self, user: int, user_factors: Iterable[Any], item: int, item_factors: Iterable[Any]) -> None:
        """Continue from another implementation's result of this step, so that earlier rounding errors are not compared again."""
        self.A[user] = [self.arithmetic.number(value) for value in user_factors]
        self._assign_user(user)
        self.B[item] = [self.arithmetic.number(value) for value in item_factors]
        self._assign_item(item)

    def _assign_user(self, user: int) -> None:
        """Line 16, the present step included."""
        for event in range(len(self.y)):
            if self.i[event] == user:
                self.Z[event] = self.A[user]

    def _assign_item(self, item: int) -> None:
        """Line 18."""
        for event in range(len(self.y)):
            if self.j[event] == item:
                self.X[event] = self.B[item]


def dot(left: Row, right: Row) -> Number:
    return sum(a * b for a, b in zip(left, right, strict=True))


def gram_matrix(rows: list[Row], ridge: Number, rank: int) -> list[Row]:
    """Σ rowᵀ row + ridge · I"""
    return [[sum((row[a] * row[b] for row in rows), ridge if a == b else 0 * ridge) for b in range(rank)] for a in range(rank)]


def weighted_sum(weights: Row, rows: list[Row], rank: int) -> Row:
    return [sum(weight * row[a] for weight, row in zip(weights, rows, strict=True)) for a in range(rank)]


def solve(matrix: list[Row], right: Row) -> Row:
    """Gaussian elimination with pivoting, and back substitution."""
    rows, _ = eliminated([[*row, value] for row, value in zip(matrix, right, strict=True)])
    solution: Row = [0] * len(rows)
    for a in reversed(range(len(rows))):
        known = sum(rows[a][b] * solution[b] for b in range(a + 1, len(rows)))
        solution[a] = (rows[a][-1] - known) / rows[a][a]
    return solution


def determinant(matrix: list[Row]) -> Number:
    rows, sign = eliminated(matrix)
    result: Number = sign
    for a in range(len(rows)):
        result = result * rows[a][a]
    return result


def eliminated(matrix: list[Row]) -> tuple[list[Row], int]:
    """The rows in echelon form, and the sign of their permutation."""
    rows = [list(row) for row in matrix]
    sign = 1
    for a in range(len(rows)):
        pivot = max(range(a, len(rows)), key=lambda candidate: abs(rows[candidate][a]))
        if pivot != a:
            rows[a], rows[pivot] = rows[pivot], rows[a]
            sign = -sign
        for b in range(a + 1, len(rows)):
            ratio = rows[b][a] / rows[a][a]
            rows[b] = [below - ratio * above for below, above in zip(rows[b], rows[a], strict=True)]
    return rows, sign
