"""The compiled steps of an exchange. Each is one call for all arrays of a shard that stay the same between exchanges."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from albatross.kernels.building.addressing import by_address
from albatross.kernels.building.keeping import parts_of
from albatross.kernels.compiling import kernel
from albatross.kernels.operations import Items, merge, or_else, refit, report, unless_denied
from albatross.kernels.rows import digest_rows


class Memory(NamedTuple):
    """What an exchange stores besides the state of its agent. To be saved with it."""

    others: Any
    """A state with only sums and population figures: those of all other shards."""
    sent: Any
    """The same for all shards: the own part as last sent, and the parts received since."""
    digests: NDArray[np.uint64]
    """Per item: a digest of its derived values when it was last sent to the others."""


class Side(NamedTuple):
    """What an exchange reads and changes, and its working space. Only the contents of the arrays change."""

    state: Any
    settings: Any
    scratch: Any
    memory: Memory
    derived: NDArray[np.uint64]
    """The bits of the derived values, one row per item; no columns if the policy has none."""
    digests: NDArray[np.uint64]
    """Those of the derived values when an exchange last read them."""
    touched: NDArray[np.bool_]
    """Per item; all false between two steps."""
    items: Items
    fits: NDArray[np.uint64]
    random: np.random.Generator


@kernel
def report_nothing(state: Any, others: Any, since: Any, figures: NDArray[np.float64]) -> int:
    return 0


@kernel
def merge_nothing(state: Any, figures: NDArray[np.float64]) -> None:
    pass


@kernel
def refit_nothing(state: Any, settings: Any, scratch: Any, others: Any, items: Items, random: np.random.Generator) -> bool:
    return False


report_if_any, merge_if_any, refit_if_any = or_else(report, report_nothing), or_else(merge, merge_nothing), or_else(refit, refit_nothing)


def report_figures(state: Any, others: Any, since: Any, figures: NDArray[np.float64]) -> int:
    return report(by_address(state), by_address(others), by_address(since), figures)


def merge_figures(state: Any, figures: NDArray[np.float64]) -> None:
    merge(by_address(state), figures)


@kernel
def list_touched(touched: NDArray[np.bool_], items: Items) -> int:
    """List the items that are marked, ascending, and remove the marks. Returns their number."""
    count = 0
    for item in range(touched.size):
        if touched[item]:
            touched[item] = False
            items[count] = item
            count += 1
    return count


def find_added(side: Any, learned: bool, figures: NDArray[np.float64]) -> tuple[int, int]:
    """List the items that were refitted or whose sums have changed, with their digests, and report.

    Returns how many items there are, and how many figures.
    """
    state, _, _, memory, derived, digests, touched, items, fits, _ = parts_of(side)
    if learned:
        digest_rows(derived, digests)
    for item in range(digests.size):
        touched[item] |= digests[item] != memory.digests[item]
    count = list_touched(touched, items)
    for position in range(count):
        item = items[position]
        fits[position] = digests[item]
        if fits[position] == memory.digests[item]:
            fits[position] = 0
    return count, report_if_any(state, memory.others, memory.sent, figures)


def apply_version(
    side: Any,
    learned: bool,
    own: int,
    start: int,
    stop: int,
    items: Items,
    fits: NDArray[np.uint64],
    senders: NDArray[np.int64],
    figures: NDArray[np.float64],
) -> bool:
    """Merge the reports of a version whose sums have been added, and refit the items that other shards have refitted.

    The own entries of the version are those from `start` to `stop`. Returns whether sums may have changed.
    """
    state, settings, scratch, memory, derived, digests, touched, listed, _, random = parts_of(side)
    for position in range(senders.size):
        if senders[position] != own:
            merge_if_any(state, figures[position])
            merge_if_any(memory.others, figures[position])
        merge_if_any(memory.sent, figures[position])
    for entry in range(items.size):
        if fits[entry] > 0:
            if start <= entry < stop:
                memory.digests[items[entry]] = fits[entry]
            else:
                touched[items[entry]] = True
    refitted = listed[: list_touched(touched, listed)]
    if learned:
        digest_rows(derived, digests)
    for item in range(digests.size):
        touched[item] = digests[item] != memory.digests[item]  # what own users have refitted since is still to be sent
    changed = unless_denied(refit_if_any(state, settings, scratch, memory.others, refitted, random))
    digest_rows(derived, digests)
    for item in range(digests.size):
        if not touched[item]:
            memory.digests[item] = digests[item]
        touched[item] = False
    return changed
