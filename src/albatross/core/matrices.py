"""Matrices that a policy reads from a file: item features, graphs."""

import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput


def read_matrix(owner: str, name: str, path: str, per: str, least_rows: int) -> NDArray[np.float64]:
    """The table in a .npy file, with a row per item or user, for the parameter `name` of a policy."""
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"{owner}: {name} is {path!r}, which cannot be read: {error}; accepted: a .npy file of numbers") from error
    if not isinstance(found, np.ndarray) or found.ndim != 2 or found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        raise InvalidInput(f"{owner}: {name} is {path!r}; accepted: a .npy file with a table of finite numbers, one row per {per}")
    if len(found) < least_rows:
        raise InvalidInput(f"{owner}: {path!r} describes {len(found)} {per}s; accepted: at least {least_rows}")
    return found.astype(np.float64)
