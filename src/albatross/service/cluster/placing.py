"""Which shard answers which request."""

from albatross.service.api.requests import Feedback
from albatross.service.storage.placing import shard_of


def shard_of_decision(decision_id: str, shards: int) -> int | None:
    """The shard in a decision's id; None if there is none.

    >>> shard_of_decision("17-9f86d081-3", 4), shard_of_decision("17-9f86d081", 4), shard_of_decision("17-9f86d081-4", 4)
    (3, None, None)
    """
    digits = decision_id.rpartition("-")[2] if decision_id.count("-") == 2 else ""
    shard = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else shards
    return shard if shard < shards else None


def shard_of_feedback(feedback: Feedback, shards: int) -> int:
    """The shard of the decision, or else of the user. Feedback without either is refused by any shard."""
    if feedback.decision_id is not None:
        named = shard_of_decision(feedback.decision_id, shards)
        if named is not None:
            return named
    return 0 if feedback.user is None else shard_of(feedback.user, shards)
