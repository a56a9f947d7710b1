"""A model as arrays and back: the contents of a snapshot."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from albatross.core.errors import InvalidInput
from albatross.core.state import copied, flatten, identity, restored
from albatross.kernels.compiling import source_fingerprint
from albatross.service.engine.learned.ledger import Ledger, no_ledger, trimmed
from albatross.service.engine.learned.model import Model
from albatross.service.storage import snapshots
from albatross.service.storage.events import Genesis
from albatross.service.storage.mark import Head
from albatross.service.storage.reading import Sum
from albatross.service.storage.snapshots import Manifest


class Capture(NamedTuple):
    """A copy of a model as it was at one event."""

    head: Head
    kernel: str
    state: Any
    shared: list[tuple[str, NDArray[Any]]]
    """What was sent to other shards and received from them."""
    ledger: Ledger
    sums: NDArray[np.float64]
    saved: bytes
    handles: Sum


def kernel_of(model: Model) -> str:
    return source_fingerprint(type(model.policy))


def capture(model: Model, head: Head, handles: Sum) -> Capture:
    """Copy a model quickly, so that serving need not wait for the disk."""
    saved = model.saved()
    saved["n_users"], saved["n_items"] = model.agent.n_users, model.agent.n_items
    saved["learning"] = model.agent.learning.bit_generator.state
    return Capture(
        head=head,
        kernel=kernel_of(model),
        state=copied(model.agent.state),
        shared=[] if model.shared is None else model.shared.saved(),
        ledger=trimmed(model.ledger),
        sums=model.series.sums.copy(),
        saved=msgspec.json.encode(saved),
        handles=handles,
    )


def write(folder: Path, taken: Capture) -> tuple[Path, Manifest]:
    arrays = {f"state.{name}": array for name, array in flatten(taken.state)}
    arrays |= {f"ledger.{name}": array for name, array in flatten(taken.ledger)}
    arrays |= {f"shared.{name}": array for name, array in taken.shared}
    arrays["sums"] = taken.sums
    arrays["saved"] = np.frombuffer(taken.saved, np.uint8)
    manifest = Manifest(taken.head.seq, taken.head.chain.hex(), identity(taken.state), taken.kernel, taken.handles)
    return snapshots.write(folder, manifest, arrays), manifest


def load(path: Path, manifest: Manifest, genesis: Genesis) -> Model:
    """The model of a snapshot. Raises `InvalidInput` if it is not exactly what was written."""
    model = Model(genesis)
    if kernel_of(model) != manifest.kernel:
        raise InvalidInput(f"{path} was written by another version of the code")
    arrays = snapshots.read(path, manifest)
    try:
        saved = json.loads(arrays.pop("saved").tobytes())
        model.agent.grow(saved["n_users"], saved["n_items"])
        model.agent.state = restored(model.agent.state, _part(arrays, "state."))
        if model.shared is not None:
            model.shared.restore(_part(arrays, "shared."))
        model.agent.learning.bit_generator.state = saved["learning"]
        ledger = _ledger(_part(arrays, "ledger."), saved["n_users"], saved["n_items"])
        model.restore(saved, ledger, arrays["sums"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path} is not a snapshot: {error}") from error
    if model.state_id != manifest.state_id:
        raise InvalidInput(f"{path} does not hold the state it names")
    return model


def _ledger(arrays: dict[str, NDArray[Any]], n_users: int, n_items: int) -> Ledger:
    blank = no_ledger(n_users, n_items)
    used = int(arrays["used"][0])
    entries: dict[str, Any] = {"before": np.empty(used, np.int32), "items": np.empty(used, np.int32), "seqs": np.empty(used, np.int64)}
    return restored(blank._replace(**entries), arrays)


def _part(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
