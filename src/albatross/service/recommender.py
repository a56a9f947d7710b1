"""The engine in your own process: the same folder, the same guarantees, no server."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from albatross import policies
from albatross.core.policy import Policy
from albatross.service.api.requests import Request
from albatross.service.api.rules import By
from albatross.service.api.verbs import A, Verbs
from albatross.service.engine.engine import Engine
from albatross.service.settings.force import options_of, settle
from albatross.service.storage.home import Home, is_address


class Recommender(Verbs):
    """Recommends items to users and learns from each rating at once. A rating is on disk before `rate` returns.

    It is thread-safe; only one process at a time may open a folder. `Client` has the same methods over HTTP.

    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> with Recommender(folder.name + "/shop", scale=(1, 5)) as shop:
    ...     decision = shop.recommend("ann", candidates=["tea", "coffee", "mate"])
    ...     shop.rate(decision, 4.0).applied
    True
    >>> with Recommender(folder.name + "/shop") as shop:
    ...     shop.user("ann").ratings
    1
    >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | Path | Home,
        scale: tuple[float, float] | None = None,
        *,
        policy: Policy | type[Policy] | str | None = None,
        seed: int | None = None,
        floor: float | None = None,
        closed_catalogue: bool | None = None,
        events: Mapping[str, float] | None = None,
        silence: tuple[float, float] | None = None,
        retention: float | None = None,
        strangers: By | None = None,
        items: Sequence[str] = (),
        users: Sequence[str] = (),
        durability: str | None = None,
        accept_changed_policy: bool | None = None,
    ) -> None:
        """Open a folder, or make it. Returns when its log has been checked and replayed.

        folder: or the address of a database, postgresql://user@host/database, which then holds the log. A setting that is not given here
        is taken from `albatross.toml` in the folder, if there is one, or else is the default.
        scale: lowest and highest rating; needed for a new folder, unless events are given.
        policy: a policy, its class, its name, file.py:Class or module:Class; for a new folder, mean-field unless given. It cannot be
        changed later.
        floor: share of places filled at random, 0.05 unless given.
        closed_catalogue: whether items are added only by `upsert_item`.
        events: named events and their rewards, for example {"click": 1, "purchase": 5}; `set_rewards` changes them later.
        silence: seconds and a reward: after so long, an item without an answer counts as answered with this reward.
        retention: seconds after which a decision without an answer is dropped from the log; never, unless given.
        strangers: what users without ratings are shown: policy (what it predicts for everybody), popular, or new; policy unless given.
        items, users: known from the beginning, in a new folder.
        durability: commit, or relaxed; commit unless given.
        accept_changed_policy: if the source of your own policy has changed, rebuild the model from the whole log.
        """
        given = {
            "policy": None if policy is None else policies.resolve(policy),
            "scale": scale,
            "seed": seed,
            "floor": floor,
            "closed_catalogue": closed_catalogue,
            "events": None if events is None else dict(events),
            "silence": silence,
            "retention": retention,
            "strangers": strangers,
            "durability": durability,
            "accept_changed_policy": accept_changed_policy,
        }
        beside = Path(folder) if isinstance(folder, str | Path) and not is_address(folder) else None
        options = options_of(settle(beside, given), items=tuple(items), users=tuple(users))
        self.engine = Engine(folder, options)
        try:
            self.engine.wait_ready()
        except BaseException:
            self.engine.close()
            raise

    def ask(self, request: Request[A]) -> A:
        return self.engine.ask(request)

    def close(self) -> None:
        """Finish waiting requests, write a snapshot, and release the folder."""
        self.engine.close()
