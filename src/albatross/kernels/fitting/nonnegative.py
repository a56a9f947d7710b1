"""Nonnegative factors: least squares with coordinates ≥ 0, or on the simplex.

The *normal equations* of a row with ratings y of vectors v are stored as one flat array: Σ v vᵀ packed, then Σ y v.
Then adding a rating is one loop over consecutive numbers, and many rows are solved side by side.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix, Vector, dot, factorize, packed_size, solve_lower, solve_upper, unpack
from albatross.kernels.pairs import NOTHING, Pairs

BLOCK = 64
"""Rows solved side by side: at rank 5 their equations and solutions fill half of a 32 KiB first-level cache."""

SIMPLEX_SWEEPS = 200
"""Limit of rounds of exchanges between the coordinates of a point of the simplex."""

SIMPLEX_TOLERANCE = 1e-12
"""A round that changes no coordinate by more than this is the last."""


class Workspace(NamedTuple):
    """Scratch of the fits below."""

    products: Matrix
    """Per item: what one rating of it adds to the normal equations of its user."""
    user_equations: Matrix
    """The normal equations of one block of users."""
    item_equations: Matrix
    """The normal equations of all items."""
    block: Matrix
    """The equations of one block, transposed so that the same number of many rows is contiguous, and a step."""


def workspace(n_items: int, rank: int) -> Workspace:
    size = packed_size(rank) + rank
    return Workspace(np.zeros((n_items, size)), np.zeros((BLOCK, size)), np.zeros((n_items, size)), np.zeros((size + 1, BLOCK)))


@kernel
def row_start(row: int) -> int:
    """Where a row of a packed matrix begins. This is also the size of a packed matrix with so many rows."""
    return row * (row + 1) // 2


@kernel
def write_products(factors: Matrix, row: int, products: Vector) -> None:
    """What one rating of 1 adds to the normal equations: all products of two coordinates of this row, then the coordinates."""
    rank = factors.shape[1]
    position = 0
    for a in range(rank):
        for b in range(a + 1):
            products[position] = factors[row, a] * factors[row, b]
            position += 1
    for a in range(rank):
        products[position + a] = factors[row, a]


@kernel
def add_ratings(equations: Vector, products: Vector, n_products: int, plays: float, total: float) -> None:
    """Add so many ratings with this sum. Choosing the weight inside one loop is cheaper than a second loop."""
    for position in range(equations.size):
        equations[position] += (plays if position < n_products else total) * products[position]


@kernel
def fit_users(
    pairs: Pairs, shift: float, ridge: float, least: float, n_sweeps: int, user_factors: Matrix, item_factors: Matrix, space: Workspace
) -> None:
    """Fit every user's vector ≥ least to the ratings less `shift`, starting from its current value. Both factors are in Fortran order."""
    n_users, rank = user_factors.shape
    n_products = row_start(rank)
    for item in range(item_factors.shape[0]):
        write_products(item_factors, item, space.products[item])
    for start in range(0, n_users, BLOCK):
        n_rows = min(BLOCK, n_users - start)
        for row in range(n_rows):
            equations = space.user_equations[row]
            equations[:] = 0.0
            entry = pairs.first[start + row]
            while entry != NOTHING:
                here = np.uint32(entry)  # unsigned: no check for negative indices
                rated, plays, total = np.uint32(pairs.items[here]), float(pairs.plays[here]), pairs.totals[here]
                entry = pairs.following[here]
                add_ratings(equations, space.products[rated], n_products, plays, total - shift * plays)
        nonnegative_least_squares(space.user_equations[:n_rows], ridge, least, n_sweeps, user_factors.T, start, space.block)


@kernel
def sum_items(pairs: Pairs, shift: float, user_factors: Matrix, space: Workspace) -> None:
    """The normal equations of every item given the users' vectors, in one pass over the users."""
    n_products = row_start(user_factors.shape[1])
    products = space.user_equations[0]
    space.item_equations[:] = 0.0
    for user in range(user_factors.shape[0]):
        write_products(user_factors, user, products)
        entry = pairs.first[user]
        while entry != NOTHING:
            here = np.uint32(entry)
            item, plays, total = np.uint32(pairs.items[here]), float(pairs.plays[here]), pairs.totals[here]
            entry = pairs.following[here]
            add_ratings(space.item_equations[item], products, n_products, plays, total - shift * plays)


@kernel
def fit_items(
    pairs: Pairs, shift: float, ridge: float, least: float, n_sweeps: int, user_factors: Matrix, item_factors: Matrix, space: Workspace
) -> None:
    """The same for every item's vector."""
    sum_items(pairs, shift, user_factors, space)
    for start in range(0, item_factors.shape[0], BLOCK):
        equations = space.item_equations[start : start + BLOCK]
        nonnegative_least_squares(equations, ridge, least, n_sweeps, item_factors.T, start, space.block)


@kernel
def nonnegative_least_squares(
    equations: Matrix, ridge: float, least: float, n_sweeps: int, coordinates: Matrix, start: int, block: Matrix
) -> None:
    """For each of at most BLOCK rows: minimize xᵀGx − 2hᵀx + ridge · xᵀx over x ≥ least, by `n_sweeps` sweeps of coordinate descent.

    Row r of `equations` holds its equations. Column start + r of `coordinates` holds its x, which is also the starting point.
    """
    n_rows, size = equations.shape
    rank = coordinates.shape[0]
    n_products = size - rank
    for position in range(size):
        lanes = block[position, :n_rows]
        for row in range(n_rows):
            lanes[row] = equations[row, position]
    for a in range(rank):
        diagonal = block[row_start(a) + a, :n_rows]
        gradient = block[n_products + a, :n_rows]
        for row in range(n_rows):
            diagonal[row] += ridge
            gradient[row] = -gradient[row]
    for a in range(rank):
        _move_gradients(block, n_products, rank, a, coordinates[a, start : start + n_rows])
    step = block[size, :n_rows]
    for _ in range(n_sweeps):
        for a in range(rank):
            solution = coordinates[a, start : start + n_rows]
            gradient = block[n_products + a, :n_rows]
            diagonal = block[row_start(a) + a, :n_rows]
            for row in range(n_rows):
                value = max(solution[row] - gradient[row] / diagonal[row], least)
                step[row] = value - solution[row]
                solution[row] = value
            _move_gradients(block, n_products, rank, a, step)


@kernel
def _move_gradients(block: Matrix, n_products: int, rank: int, a: int, step: Vector) -> None:
    """In every row: gradient += step · column a of G."""
    for b in range(rank):
        coefficient = block[row_start(max(a, b)) + min(a, b), : step.size]
        gradient = block[n_products + b, : step.size]
        for row in range(step.size):
            gradient[row] += step[row] * coefficient[row]


class Table(NamedTuple):
    """Scratch of fits to a table users × columns, in which some users (anchors) represent all."""

    cells: Matrix
    columns: NDArray[np.int64]
    """Per item its column, or NOTHING."""
    means: Matrix
    """Per column the mean of the known cells, and their number."""
    anchors: NDArray[np.int64]
    """The users who represent all."""
    basis: Matrix
    squares: Vector
    gram: Matrix
    factor: Matrix
    moment: Vector
    solution: Vector


def table(n_users: int, n_columns: int, n_items: int, rank: int) -> Table:
    return Table(
        np.zeros((n_users, n_columns)), np.zeros(n_items, np.int64), np.zeros((2, n_columns)), np.zeros(rank, np.int64),
        np.zeros((rank, n_columns)), np.zeros(n_users), np.zeros((rank, rank)), np.zeros((rank, rank)), np.zeros(rank), np.zeros(rank),
    )  # fmt: skip


@kernel
def fill_table(pairs: Pairs, shift: float, chosen: NDArray[np.bool_], table: Table) -> None:
    """The mean ratings of the chosen items less `shift`; for an unrated item, the mean of its column."""
    cells, columns, means = table.cells, table.columns, table.means
    n_columns = 0
    for item in range(columns.size):
        columns[item] = NOTHING
        if chosen[item] and n_columns < cells.shape[1]:
            columns[item] = n_columns
            n_columns += 1
    cells[:] = np.nan
    means[:] = 0.0
    for user in range(cells.shape[0]):
        entry = pairs.first[user]
        while entry != NOTHING:
            column = columns[pairs.items[entry]]
            if column != NOTHING:
                cells[user, column] = pairs.totals[entry] / pairs.plays[entry] - shift
                means[1, column] += 1.0
                means[0, column] += (cells[user, column] - means[0, column]) / means[1, column]
            entry = pairs.following[entry]
    for user in range(cells.shape[0]):
        for column in range(cells.shape[1]):
            if math.isnan(cells[user, column]):
                cells[user, column] = means[0, column]


@kernel
def place_users(table: Table, user_factors: Matrix) -> None:
    """The convex combination of the anchors that is nearest to each user's row."""
    cells, anchors = table.cells, table.anchors
    for a in range(anchors.size):
        for b in range(anchors.size):
            table.gram[a, b] = dot(cells[anchors[a]], cells[anchors[b]])
    for user in range(cells.shape[0]):
        for a in range(anchors.size):
            table.moment[a] = dot(cells[anchors[a]], cells[user])
        simplex_least_squares(table.gram, table.moment, table.solution)
        for a in range(anchors.size):
            user_factors[user, a] = table.solution[a]


@kernel
def regress_items(ridge: float, item_factors: Matrix, space: Workspace, table: Table) -> None:
    """Every item's vector by ridge regression, of any sign, from the normal equations of `sum_items`."""
    solution = table.solution
    for item in range(item_factors.shape[0]):
        equations = space.item_equations[item]
        unpack(equations, ridge, table.gram)
        factorize(table.gram, table.factor, 0.5 * ridge)
        solve_lower(table.factor, equations[equations.size - solution.size :], solution)
        solve_upper(table.factor, solution, solution)
        for a in range(solution.size):
            item_factors[item, a] = solution[a]


@kernel
def simplex_least_squares(gram: Matrix, moment: Vector, solution: Vector) -> None:
    """Minimize xᵀGx − 2hᵀx over x ≥ 0, Σ x = 1, by exchanges between two coordinates. `moment` is overwritten.

    An exchange is the exact minimum along the line between two corners, so the objective never rises. Both triangles of G are read.
    """
    rank = solution.size
    for a in range(rank):
        solution[a] = 1.0 / rank
    for a in range(rank):
        moment[a] -= dot(gram[a], solution)
    for _ in range(SIMPLEX_SWEEPS):
        furthest = 0.0
        for a in range(rank):
            for b in range(a):
                curvature = gram[a, a] + gram[b, b] - 2.0 * gram[a, b]
                if not curvature > 0.0:
                    continue
                step = min(max((moment[a] - moment[b]) / curvature, -solution[a]), solution[b])
                solution[a] += step
                solution[b] -= step
                for c in range(rank):
                    moment[c] -= step * (gram[a, c] - gram[b, c])
                furthest = max(furthest, abs(step))
        if furthest <= SIMPLEX_TOLERANCE:
            break


@kernel
def successive_projections(matrix: Matrix, basis: Matrix, squares: Vector, anchors: NDArray[np.int64]) -> None:
    """Rows such that all rows are nearly convex combinations of them: each is the one furthest from the span of those before.

    `basis` (one row per anchor) and `squares` (one number per row of the matrix) are scratch.
    """
    n_rows = matrix.shape[0]
    for row in range(n_rows):
        squares[row] = dot(matrix[row], matrix[row])
    for order in range(anchors.size):
        furthest = 0
        for row in range(1, n_rows):
            if squares[row] > squares[furthest]:
                furthest = row
        anchors[order] = furthest
        direction = basis[order]
        for column in range(direction.size):
            direction[column] = matrix[furthest, column]
        for before in range(order):
            share = dot(direction, basis[before])
            for column in range(direction.size):
                direction[column] -= share * basis[before, column]
        length = math.sqrt(dot(direction, direction))
        for column in range(direction.size):
            direction[column] = direction[column] / length if length > 0.0 else 0.0
        for row in range(n_rows):
            share = dot(matrix[row], direction)
            squares[row] = max(squares[row] - share * share, 0.0)
