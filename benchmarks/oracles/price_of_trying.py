"""The exact price of trying an item without repeats, and mean-field's: `python -m benchmarks.oracles.price_of_trying`.

Two items, and users who come once each and click or not. What is known of the first item is certain; the chance of a click on the second
has a beta distribution. By dynamic programming: how much better than the second item's mean may the first one be, so that it still pays to
try the second? Mean-field gives such an item a bonus instead, with normal beliefs of the same variance and N = the users to come.
"""

import math

import numpy as np

from albatross.kernels.mean_field.gittins import worth_of

BELIEFS = ((1.0, 1.0), (2.0, 2.0), (10.0, 10.0), (1.0, 9.0), (8.0, 2.0))
USERS = (5, 20, 100, 400)
HALVINGS = 22


def exact_price(clicked: float, not_clicked: float, users: int) -> float:
    """The most that the certain item may be ahead of the mean of the other one, if trying that one is still worth it."""
    mean = clicked / (clicked + not_clicked)
    low, high = mean, 1.0
    for _ in range(HALVINGS):
        certain = 0.5 * (low + high)
        if value_of_trying(clicked, not_clicked, users, certain) > certain * users:
            low = certain
        else:
            high = certain
    return low - mean


def value_of_trying(clicked: float, not_clicked: float, users: int, certain: float) -> float:
    """Expected clicks if the uncertain item is shown first, and as long as that is best. Who has left it does not come back to it."""
    values = np.zeros(users + 1)  # by the number of clicks, after all users
    for shown in range(users - 1, -1, -1):
        chance = (clicked + np.arange(shown + 1)) / (clicked + not_clicked + shown)
        values = chance * (1.0 + values[1 : shown + 2]) + (1.0 - chance) * values[: shown + 1]
        if shown > 0:
            values = np.maximum(values, certain * (users - shown))
    return float(values[0])


def our_price(clicked: float, not_clicked: float, users: int) -> float:
    """The bonus of mean-field before it is limited by the top of the scale."""
    total = clicked + not_clicked
    mean = clicked / total
    variance = mean * (1.0 - mean) / (total + 1.0)
    noise = mean * (1.0 - mean) - variance
    return math.sqrt(noise * worth_of(variance / noise, users - 1.0))


def main() -> None:
    print("belief, users to come: exact price, ours, ratio")
    for belief in BELIEFS:
        for users in USERS:
            exact, ours = exact_price(*belief, users), our_price(*belief, users)
            print(f"beta{belief}, {users}: {exact:.3f}, {ours:.3f}, {ours / exact:.2f}")


if __name__ == "__main__":
    main()
