"""Whether a folder is what it says: the model rebuilt from the log alone, compared with everything that was written down of it."""

from pathlib import Path
from typing import NamedTuple

from albatross.service import snapshot
from albatross.service.deciding import decide
from albatross.service.events import Decided, Forget, Genesis
from albatross.service.log import Store
from albatross.service.messages import Recommend
from albatross.service.model import Model
from albatross.service.recovery import Progress, check_keys, decoded, nothing, replay


class Verdict(NamedTuple):
    seq: int
    chain: str
    state_id: str
    ratings: int
    decisions: int
    confirmed: list[int]
    """Events at which a snapshot has exactly the state the log gives."""
    contradicted: list[int]
    skipped: list[str]
    """Snapshots that cannot be compared, and why."""


def verify(store: Store, folder: Path, genesis: Genesis, progress: Progress = nothing) -> Verdict:
    """Rebuild the model from the log alone, checking every row, every id and every snapshot."""
    sound, skipped = snapshot.manifests(folder)
    model = Model(genesis)
    comparable = {}
    for path, manifest in sound:
        chain = store.chain_at(manifest.seq)
        if manifest.kernel != snapshot.kernel_of(model):
            skipped.append(f"{path} was written by another version of the code")
        elif chain is None or chain.hex() != manifest.chain:
            skipped.append(f"{path} belongs to another log")
        else:
            comparable[manifest.seq] = manifest.state_id
    confirmed: list[int] = []
    contradicted: list[int] = []
    for seq in sorted(comparable):
        replay(store, model, progress, until=seq)
        (confirmed if model.state_id == comparable[seq] else contradicted).append(seq)
    replay(store, model, progress)
    check_keys(store)
    return Verdict(store.head.seq, store.head.chain.hex(), model.state_id, model.ratings, model.decisions, confirmed, contradicted, skipped)


class Redecided(NamedTuple):
    same: int
    different: list[int]
    """Decisions that come out otherwise."""
    unknowable: int
    """Decisions by a model of which a part was erased since, or by another policy."""


def redecide(store: Store, genesis: Genesis, progress: Progress = nothing) -> Redecided:
    """Make every decision of the log again, by the model as it was then."""
    model, same = Model(genesis), 0
    different: list[int] = []
    last = _last_forget(store)
    unknowable = 0
    for first, bodies in store.read():
        for seq, event in zip(*decoded(first, bodies), strict=True):
            if isinstance(event, Decided) and seq > max(last, genesis.inherited):
                model.learn()
                if decide(model, _request(event), seq, event.model_seq, event.at).items == event.items:
                    same += 1
                else:
                    different.append(seq)
            unknowable += isinstance(event, Decided) and seq <= max(last, genesis.inherited)
            model.fold(seq, event)
        progress(first + len(bodies) - 1, store.head.seq)
    return Redecided(same, different, unknowable)


def _last_forget(store: Store) -> int:
    pairs = (pair for first, bodies in store.read(checked=False) for pair in zip(*decoded(first, bodies), strict=True))
    return max((seq for seq, event in pairs if isinstance(event, Forget)), default=0)


def _request(event: Decided) -> Recommend:
    return Recommend(event.user, event.n, event.candidates, event.exclude, event.exclude_seen, False, event.request_id)
