"""The growth of regret as a table."""

from albatross.studies.report.study import Summary
from albatross.studies.reproducing.growth import Growth
from albatross.studies.showing import show_estimate, show_number

AXES = {"steps": "time (steps)", "n_users": "users", "n_items": "items"}
"""The names of the sizes."""


def growth_summary(growth: Growth) -> Summary:
    """A line per policy: regret at the smallest and at the largest size, the exponent and the verdict."""
    axis = AXES.get(growth.axis, growth.axis)
    rows = [
        [
            law.policy,
            str(law.n_seeds),
            show_number(law.regret.mean[0], 0),
            show_number(law.regret.mean[-1], 0),
            show_estimate(law.exponent, 3),
            law.verdict,
        ]
        for law in growth.laws
    ]
    sizes = growth.laws[0].sizes
    ends = [f"regret at {show_number(size, 0)}" for size in (sizes[0], sizes[-1])]
    return Summary(f"{growth.title}: regret grows as a power of {axis}", ["policy", "seeds", *ends, "exponent", "verdict"], {axis: rows})
