"""`albatross play`: simulated customers for a running service."""

import os
import time

from albatross.cli.progress import progress_bar
from albatross.core.errors import InvalidInput
from albatross.service.client import Client
from albatross.service.tools.playing import Play, Played

MOST_VISITS = 1_000_000


def play(url: str = "http://localhost:8000", *, visits: int = 1000, per_second: float = 20.0, seed: int = 0) -> None:
    """Let simulated customers visit a running shop, to watch on its page. Do not use it on a folder with real users.

    Visitors come without a name, look at four items, click, buy, log in and return. Items sell out, are added and are retired. The
    service must run with --events impression=0,click=1,cart=3,purchase=5. If a key is needed (scopes recommend, feedback, read and
    admin), set the variable ALBATROSS_KEY to it. The interrupt key ends the command; what was learned stays.

    Parameters
    ----------
    url
        URL of the service.
    visits
        Number of visits.
    per_second
        Visits per second, at most; 0: as fast as the service answers.
    seed
        Seed of the customers: the same seed gives the same customers.
    """
    if not 1 <= visits <= MOST_VISITS:
        raise InvalidInput(f"visits is {visits}; accepted: 1 to {MOST_VISITS:,}")
    if not 0 <= per_second < float("inf"):
        raise InvalidInput(f"per-second is {per_second}; accepted: a number from 0 on")
    with Client(url, os.environ.get("ALBATROSS_KEY")) as service, progress_bar(visits, "visits") as progress:
        playing = Play(service, visits, seed)
        try:
            playing.open()
            began = time.monotonic()
            for played in playing.visits():
                if progress is not None:
                    progress(1)
                if per_second:
                    time.sleep(max(began + played.visits / per_second - time.monotonic(), 0.0))
        finally:
            if playing.played.visits:
                print(_told(playing.played))


def _told(played: Played) -> str:
    share = played.clicks / played.shown if played.shown else 0.0
    return (
        f"{played.visits:,} visits: {played.shown:,} items looked at, {played.clicks:,} clicks ({share:.1%}), "
        f"{played.purchases:,} purchases, {played.joins:,} visitors logged in, {played.refused:,} found nothing"
    )
