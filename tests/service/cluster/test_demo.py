"""The public of `albatross cluster demo`, against a service that the tests have anyway."""

import contextlib

from live import Live

from albatross import Client
from albatross.cli.cluster.demo import Crowd
from albatross.environments.further import Stars


def test_visitors_are_shown_items_and_rate_them(shop: Live) -> None:
    url = f"http://127.0.0.1:{shop.port}"
    with contextlib.closing(Client(url)) as client:
        before = client.version().ratings
        crowd = Crowd(url, Stars(n_users=5, n_items=6, rank=2))
        heard: list[float] = []
        while len(heard) < 20 and crowd.failure is None:
            heard += crowd.heard()
        crowd.close()
        assert crowd.failure is None
        heard += crowd.heard()
        assert len(heard) == crowd.ratings == client.version().ratings - before
    assert set(heard) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert 1 < crowd.by_chance < 5
