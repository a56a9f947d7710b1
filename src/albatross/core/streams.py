"""Where randomness comes from: streams named by a seed and a purpose.

Two purposes never share draws, so every policy meets the same public at the same seed.
"""

import hashlib
from collections.abc import Callable

import numpy as np

Streams = Callable[[str], np.random.Generator]
"""From a purpose to its stream, at one seed."""


def stream(seed: int, purpose: str) -> np.random.Generator:
    """The random stream for one purpose.

    >>> stream(0, "arrivals").integers(100, size=4).tolist() == stream(0, "arrivals").integers(100, size=4).tolist()
    True
    >>> stream(0, "arrivals").random() == stream(0, "reactions").random()
    False
    """
    name = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng([seed, name])
