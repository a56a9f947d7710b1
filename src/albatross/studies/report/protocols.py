"""All protocols in one table: our policy beside the best simple policy, per data set."""

from collections.abc import Sequence

from albatross.studies.report.document import Block, Grid, Heading, Paragraph, Picture
from albatross.studies.reproducing.paper import BEYOND, TITLES
from albatross.studies.reproducing.protocols import LEARNERS, Standing
from albatross.studies.showing import show_estimate, show_number

FIGURE = "protocols"
PROTOCOL_TITLES = {
    "repeats": "Repeats",
    "no-repeats": "No repeats",
    "clicks": "Clicks",
    "clicks-no-repeats": "Clicks, no repeats",
}


def protocol_blocks(standings: Sequence[Standing], picture: Picture) -> list[Block]:
    others = [name for name in LEARNERS if name != BEYOND]
    said_first = (
        f"{BEYOND} with its defaults, without knowledge of the protocol, against {', '.join(others[:-1])} and {others[-1]}. Greedy is "
        f"{BEYOND} that never explores. Clicks: a rating is 1 if it is good, else 0. No repeats: a user is shown an item once. "
        "The difference is paired by seed, against whichever of the others has the lowest mean regret."
    )
    rows = [
        [
            PROTOCOL_TITLES[standing.protocol],
            TITLES[standing.dataset],
            f"{standing.steps:,}",
            show_number(standing.regret, 0),
            show_number(standing.rival_regret, 0),
            standing.rival,
            show_estimate(standing.difference),
        ]
        for standing in standings
    ]
    headings = ("protocol", "data set", "steps", BEYOND, "best of the others", "which", "difference, paired")
    return [Heading("All protocols"), Paragraph(said_first), picture, Grid(headings, rows)]
