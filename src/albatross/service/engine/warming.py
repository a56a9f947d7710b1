"""Before the first request: compiled code is loaded, or compiled, so that nobody waits for it."""

from msgspec.structs import replace

from albatross.service.api.requests import Recommend
from albatross.service.engine.deciding import decide
from albatross.service.engine.model import Model
from albatross.service.engine.overlay import Overlay
from albatross.service.storage.events import Genesis, Item, Rated


def warm(genesis: Genesis) -> None:
    """Live a short life with the same policy, on a model that is thrown away."""
    items = genesis.items or ["first"]
    model = Model(replace(genesis, users=[]))
    model.fold_all([2], [Item(0.0, items[0])])
    for seq in (3, 4):  # the second time, the first waits for its rating
        model.fold_all([seq], [decide(Overlay(model), Recommend("somebody"), seq, seq - 1, 0.0)])
    model.fold_all([5], [Rated(0.0, "rating", "somebody", items[0], genesis.scale[0], None, None, None)])
    model.learn()
