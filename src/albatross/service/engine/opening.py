"""From a home to an open log and its first event: created, adopted or refused, before anything is served."""

from collections.abc import Callable

from msgspec.structs import replace

from albatross.service.engine.learned.model import Model
from albatross.service.engine.learned.options import Options, adoption, check_agrees, named, new_genesis
from albatross.service.engine.learned.reacting import check_replaces
from albatross.service.engine.learned.silence import Silence, check_silence
from albatross.service.engine.warming import warm
from albatross.service.storage.events import Genesis, encode
from albatross.service.storage.handles import handles_of
from albatross.service.storage.home import Home
from albatross.service.storage.numbering import rewards_now
from albatross.service.storage.reading import adoptions, read_genesis
from albatross.service.storage.store import Row, Store

ADOPTED = b"adopted"
"""Content of the handle of an accepted change of the policy: it has only one possible value."""

OpenStore = Callable[[Home, bool], Store]
"""From a home, and whether every commit is durable, to its log."""


def open_home(home: Home, options: Options, open_store: OpenStore | None) -> tuple[Store, Genesis]:
    """The log for writing, and its first event. Refuses options that contradict the log. The caller has claimed the home."""
    if not home.begun:
        home.begin([Row(encode(first_event(options)))])
    durable = options.durability == "commit"
    store = home.open(durable) if open_store is None else open_store(home, durable)
    try:
        genesis = _read_genesis(home, options, store)
        check_stance(options, genesis)
        check_agrees(options, genesis, str(home), rewards_now(store, genesis)[1])
    except BaseException:
        store.close()
        raise
    return store, genesis


def first_event(options: Options) -> Genesis:
    """The first event of a new folder. Refuses what cannot be served, because the folder would keep its scale and its policy."""
    genesis = new_genesis(options)
    check_stance(options, genesis)
    try_out(genesis)
    return genesis


def check_stance(options: Options, genesis: Genesis) -> None:
    """Refuse a reward of silence that the scale or the policy does not allow."""
    if options.silence is not None:
        with named(options, "silence"):
            check_silence(Silence(*options.silence), genesis.scale)
            check_replaces(genesis.policy, Model(genesis).agent.state, "silence")


def _read_genesis(home: Home, options: Options, store: Store) -> Genesis:
    """The first event, after changed sources of the policy were accepted, if they are."""
    genesis = read_genesis(store, str(home))
    adopted = adoption(options, genesis, 1 + sum(1 for _ in adoptions(store)))
    if adopted is None:
        return genesis
    try_out(replace(genesis, outside=adopted.outside, parameters=adopted.parameters))
    store.append([Row(encode(adopted), [(handle, ADOPTED) for handle in handles_of(adopted)])])
    home.remove_snapshots()  # they belong to the old source
    return read_genesis(store, str(home))


def try_out(genesis: Genesis) -> None:
    """Refuse an unusable policy; for one from outside, also one that cannot be compiled."""
    if genesis.outside is None:
        Model(genesis)
    else:
        warm(genesis)
