"""What it is worth to try something for the sake of the visits to come: Gittins' index in closed form."""

import math

from albatross.kernels.compiling import kernel

LOOKS = 0.8
"""How the noise of a rating, against what there is to learn, shortens the time that is left to gain from it."""


@kernel
def worth(visits: float, per: float) -> float:
    """The q for which N · E[(Z − q)₊] = q, N = visits / per, Z standard normal.

    To within 3 % for N from a thousandth to 10⁸, by operations that every machine rounds alike. A rational function of √N, written in
    √(visits · per) and `per` so that it takes one division.
    """
    root = math.sqrt(visits * per)
    above = per * (0.40088 * per + 0.11807 * root) + 2.4757e-4 * root * root
    below = root * (0.038225 * per + 4.9092e-5 * root) + 0.5058 * per * per
    below = root * (root * below + 0.33127 * per * per * per) + per * per * per * per
    return visits * per * above / below


@kernel
def worth_of(ratio: float, visits: float) -> float:
    """The square of what it is worth to try what has a variance of `ratio`, both in units of the noise of a rating."""
    q = worth(visits * ratio, ratio + LOOKS)
    return ratio * q * q


@kernel
def bonus(square: float, lacking: float) -> float:
    """The square root of `square`, but less than what is lacking to the top."""
    limit = lacking * lacking
    return math.sqrt(square * limit / (square + limit)) if lacking > 0.0 and square > 0.0 else 0.0
