"""The cost of rules of a recommendation beside the policy, with 100,000 items: `python -m benchmarks.serving.filters`."""

import statistics
import time

import numpy as np

from albatross.service.api.rules import Where
from albatross.service.engine.learned.descriptions import Descriptions
from albatross.service.engine.learned.filtering import Filters
from albatross.service.storage.events import Description

ITEMS, LABELS, TIMES = 100_000, 50, 200
WHERE = Where(
    all=[
        Where(attribute="category", is_=["c1", "c2", "c3"]),
        Where(attribute="price", from_=10.0, to=90.0),
        Where(none=[Where(attribute="brand", is_="b7")]),
    ]
)


def main() -> None:
    random, described = np.random.default_rng(0), Descriptions()
    categories, brands, prices = random.integers(LABELS, size=ITEMS), random.integers(LABELS, size=ITEMS), random.uniform(0, 100, ITEMS)
    for item in range(ITEMS):
        described.describe(item, Description({"category": f"c{categories[item]}", "brand": f"b{brands[item]}", "price": prices[item]}))
    items = np.arange(ITEMS, dtype=np.int32)
    filters = Filters()
    filters.satisfying(WHERE, described, items, ITEMS)
    told = {"asked before": [], "after a change of some item": []}  # type: dict[str, list[float]]
    for number in range(TIMES):
        for name, seconds in told.items():
            if name != "asked before":
                described.describe(number, Description(in_stock=number % 2 == 0))
            began = time.perf_counter()
            filters.satisfying(WHERE, described, items, ITEMS)
            seconds.append(time.perf_counter() - began)
    for name, seconds in told.items():
        print(f"where on {ITEMS:,} items, {name}: median {1e3 * statistics.median(seconds):.3f} ms")
    seconds = []
    for number in range(ITEMS):
        described.describe(number, Description(available_until=1e9 + number))
    for number in range(20):
        described.describe(number, Description(in_stock=number % 2 == 0))
        began = time.perf_counter()
        described.available(items, 0.0)
        seconds.append(time.perf_counter() - began)
    print(f"what is in stock of {ITEMS:,} items, after a change: median {1e3 * statistics.median(seconds):.3f} ms")


if __name__ == "__main__":
    main()
