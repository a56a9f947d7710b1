"""Averages over groups of ratings, in bounded memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.compiling import program
from albatross.service.api.answers import Series

GROUPS = 512
"""Limit of groups (an even number): when it is reached, neighbours are merged and each group holds twice as many ratings."""

BOUNDLESS = 1e300
"""A score this large means that the item has not been tried, not that it is good."""

RATINGS, REWARD, DECIDED, INSIDE, GAP, SQUARES = range(6)


class SeriesKeeper:
    """Sums per group. A function of the ratings in order, however they are batched."""

    def __init__(self) -> None:
        self.width = 1
        self.count = 0
        self.sums: NDArray[np.float64] = np.zeros((GROUPS, 6))

    def add(self, ratings: NDArray[np.float64], means: NDArray[np.float64], scores: NDArray[np.float64]) -> None:
        """Add ratings; `means` and `scores` are NaN without a decision."""
        start = 0
        while start < ratings.size:
            end = start + self.width * GROUPS - self.count
            program(add_terms)(self.sums, self.count, self.width, ratings[start:end], means[start:end], scores[start:end])
            self.count += min(end, ratings.size) - start
            start = end
            self._make_room()

    def skip(self, number: int) -> None:
        """Leave out so many ratings: they are part of the series of another shard."""
        while number > 0:
            step = min(number, self.width * GROUPS - self.count)
            self.count += step
            number -= step
            self._make_room()

    def _make_room(self) -> None:
        if self.count == self.width * GROUPS:
            self.sums[: GROUPS // 2] = self.sums[0::2] + self.sums[1::2]
            self.sums[GROUPS // 2 :] = 0.0
            self.width *= 2

    def exchange(self, number: int, before: float, after: float, mean: float | None, score: float | None) -> None:
        """Replace the rating with this number by another one."""
        means, scores = np.array([mean, mean], np.float64), np.array([score, score], np.float64)
        old, new = terms = np.zeros((2, self.sums.shape[1]))
        program(add_terms)(terms, 0, 1, np.array([before, after], np.float64), means, scores)
        self.sums[number // self.width] += new - old

    def series(self) -> Series:
        used = self.sums[: -(-self.count // self.width)]

        def averages(total: int, number: int) -> list[float | None]:
            return [float(row[total] / row[number]) if row[number] else None for row in used]

        return Series(
            width=self.width,
            ratings=[int(count) for count in used[:, RATINGS]],
            reward=averages(REWARD, RATINGS),
            reward_error=[_error_of_mean(row[RATINGS], row[REWARD], row[SQUARES]) for row in used],
            calibration=averages(INSIDE, DECIDED),
            optimism=averages(GAP, DECIDED),
        )

    @classmethod
    def merged(cls, keepers: "Sequence[SeriesKeeper]") -> "SeriesKeeper":
        """Merge several shards: the first groups of all of them become one, then the second, and so on."""
        together = cls()
        width = max(keeper.width for keeper in keepers)
        for keeper in keepers:
            sums = keeper.sums[: -(-keeper.count // keeper.width)]
            wide = -(-np.arange(1, len(sums) + 1) * keeper.width // width) - 1
            np.add.at(together.sums, wide, sums)
            together.count = max(together.count, keeper.count)
        groups = -(-together.count // width)
        together.width, together.count = width * len(keepers), width * len(keepers) * groups
        return together

    def saved(self) -> dict[str, Any]:
        return {"width": self.width, "count": self.count}


def add_terms(
    sums: NDArray[np.float64],
    count: int,
    width: int,
    ratings: NDArray[np.float64],
    means: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """Add each rating to the sums of its group, after `count` others. Compiled, because it runs for every rating."""
    for step in range(ratings.size):
        group, rating = sums[(count + step) // width], ratings[step]
        group[RATINGS] += 1.0
        group[REWARD] += rating
        group[SQUARES] += rating * rating
        if np.abs(scores[step]) < BOUNDLESS:  # false for NaN
            group[DECIDED] += 1.0
            group[INSIDE] += 1.0 if np.abs(rating - means[step]) <= np.abs(scores[step] - means[step]) else 0.0
            group[GAP] += scores[step] - rating


def _error_of_mean(count: float, total: float, squares: float) -> float | None:
    """The standard error of the mean of `count` values with this sum and this sum of squares."""
    if count < 2 or not np.isfinite(squares):
        return None
    return float(np.sqrt(max(squares - total * total / count, 0.0) / (count * (count - 1.0))))
