"""Anchor rows of a nearly separable matrix by linear programming, through SciPy's HiGHS.

Compiled code calls back into Python for it. The linear programme over all pairs of rows takes so long that the call does not matter.
"""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import kernel
from albatross.kernels.linear import Matrix

LARGEST_PROGRAMME = 100_000
"""Limit of the coefficients of a programme (rows² × columns). One this large takes about three seconds, and every fit solves one."""

TIE_BREAK = 1e-3
"""Weight of the distinct row weights relative to the error: enough to choose among equal rows."""


def programme_size(n_rows: int, n_columns: int) -> int:
    return n_rows * n_rows * n_columns


@kernel
def hottopixx(matrix: Matrix, anchors: NDArray[np.int64]) -> None:
    """Write the numbers of the rows that serve best as anchors, as many as `anchors` holds."""
    n_anchors = anchors.size
    with numba.objmode(found="int64[::1]"):
        found = solve_programme(matrix, n_anchors)
    for order in range(n_anchors):
        anchors[order] = found[order]


def solve_programme(matrix: Matrix, n_anchors: int) -> NDArray[np.int64]:
    """The rows i with the largest C_ii of the programme

        minimize τ + small · Σ p_i C_ii  subject to  |X_i − (CX)_i|₁ ≤ τ,  0 ≤ C_ji ≤ C_ii ≤ 1,  Σ C_ii = n_anchors

    with distinct weights p. A row of C gives that row of X as a combination of the anchors. With fewer rows than anchors they repeat.
    """
    # Imported here: SciPy takes as long to import as the rest of the library, and few users need this solver.
    from scipy import sparse
    from scipy.optimize import linprog

    n_rows, n_columns = matrix.shape
    scale = max(float(np.abs(matrix).max()), np.finfo(float).tiny)
    target = matrix / scale
    n_cells, n_shares = n_rows * n_columns, n_rows * n_rows
    n_found = min(n_anchors, n_rows)
    # Unknowns: the shares C row by row, the parts of X − CX above and below zero, τ.
    identity = sparse.identity
    diagonal = np.arange(n_rows) * (n_rows + 1)
    made = sparse.hstack([sparse.kron(identity(n_rows), target.T), identity(n_cells), -identity(n_cells), _empty(n_cells, 1)])
    trace = sparse.csr_matrix((np.ones(n_rows), (np.zeros(n_rows, int), diagonal)), shape=(1, n_shares + 2 * n_cells + 1))
    row_sums = sparse.kron(identity(n_rows), np.ones((1, n_columns)))
    errors = sparse.hstack([_empty(n_rows, n_shares), row_sums, row_sums, -np.ones((n_rows, 1))])
    made_row, anchor = np.nonzero(~np.eye(n_rows, dtype=bool))
    order = np.arange(made_row.size)
    signs = np.repeat([1.0, -1.0], order.size)
    places = (np.tile(order, 2), np.concatenate([made_row * n_rows + anchor, diagonal[anchor]]))
    below_diagonal = sparse.csr_matrix((signs, places), shape=(order.size, n_shares + 2 * n_cells + 1))
    costs = np.zeros(n_shares + 2 * n_cells + 1)
    costs[diagonal] = TIE_BREAK * np.arange(1, n_rows + 1) / (n_rows * n_found)
    costs[-1] = 1.0
    limits = np.tile([0.0, np.inf], (costs.size, 1))
    limits[:n_shares, 1] = 1.0
    result = linprog(
        costs,
        A_ub=sparse.vstack([errors, below_diagonal]).tocsc(),
        b_ub=np.zeros(n_rows + order.size),
        A_eq=sparse.vstack([made, trace]).tocsc(),
        b_eq=np.append(target.ravel(), float(n_found)),
        bounds=limits,
        method="highs",
    )
    if result.status != 0:
        raise RuntimeError(f"hottopixx: the linear programme of {n_rows} rows and {n_columns} columns was not solved: {result.message}")
    found = np.argsort(-result.x[diagonal], kind="stable")[:n_found]
    return np.resize(found, n_anchors).astype(np.int64)


def _empty(n_rows: int, n_columns: int) -> Any:
    from scipy import sparse

    return sparse.csr_matrix((n_rows, n_columns))
