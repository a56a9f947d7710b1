"""Batches between fronts and shards, as bytes. Packing object by object takes longer than learning them."""

import copyreg
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import astuple

from albatross.service.api.answers import Accepted, BatchAccepted, Refusal
from albatross.service.api.requests import Feedback, FeedbackBatch

_pack = msgspec.msgpack.Encoder().encode
_unpack_events = msgspec.msgpack.Decoder(list[Feedback]).decode
_unpack_answers = msgspec.msgpack.Decoder(list[list[Any]]).decode


def unpacked_batch(content: bytes) -> FeedbackBatch:
    return FeedbackBatch(_unpack_events(content))


def unpacked_answers(content: bytes) -> BatchAccepted:
    """A refusal has three values, anything else four."""
    return BatchAccepted([Refusal(*values) if len(values) == 3 else Accepted(*values) for values in _unpack_answers(content)])


def _packed_batch(batch: FeedbackBatch) -> tuple[Callable[[bytes], FeedbackBatch], tuple[bytes]]:
    return unpacked_batch, (_pack(batch.events),)


def _packed_answers(batch: BatchAccepted) -> tuple[Callable[[bytes], BatchAccepted], tuple[bytes]]:
    return unpacked_answers, (_pack([astuple(answer) for answer in batch.answers]),)


def pack_batches() -> None:
    """From now on, in this process: pickling, also by Ray, packs batches as bytes."""
    copyreg.pickle(FeedbackBatch, _packed_batch)
    copyreg.pickle(BatchAccepted, _packed_answers)
