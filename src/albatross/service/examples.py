"""What a request and its answer look like: the examples in the served OpenAPI."""

from typing import Any

import msgspec
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example

from albatross.service import messages
from albatross.service.batches import NDJSON, LineAnswer


def _answer(example: messages.Answer, description: str) -> dict[int, ResponseSpec]:
    kind: Any = type(example)
    return {
        200: ResponseSpec(kind, generate_examples=False, description=description, examples=[Example(value=msgspec.to_builtins(example))])
    }


RECOMMEND = [
    Example(summary="one item of all", value={"user": "ann"}),
    Example(
        summary="two of these, not seen before, and why",
        value={
            "user": "ann",
            "n": 2,
            "candidates": ["tea", "coffee", "mate"],
            "exclude_seen": "rated",
            "explain": True,
            "request_id": "r-1",
        },
    ),
]
FEEDBACK = [
    Example(summary="a rating of a decision", value={"event_id": "e-1", "decision_id": "d-1", "item": "tea", "rating": 4.5}),
    Example(summary="a rating by itself", value={"event_id": "e-2", "user": "ann", "item": "tea", "rating": 4.5}),
]
ITEM = [Example(summary="an item", value={"item": "tea"})]
NOTHING = [Example(summary="nothing to say", value={})]
USER = [Example(summary="a user", value={"user": "ann"})]

_SHOWN = messages.ShownItem("tea", 1, 4.75, 4.25, 0.5, 0.9625)
_ELLIPSOID = messages.Ellipsoid([0.5, 1.0], 1.5, [1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]])

DECISION = _answer(messages.Decision("d-1", "ann", "alb", 41, [_SHOWN], 3), "What to show, and why")
ACCEPTED = _answer(messages.Accepted(42, True, False, 42), "The rating is in the log, and the model knows it")
ITEM_ACCEPTED = _answer(messages.ItemAccepted("tea", False, True, 43, 43), "The item is as asked for")
USER_VIEW = _answer(messages.UserView("ann", 3, ["mate"], [0.5, 1.0], _ELLIPSOID, [_SHOWN], 42), "What is believed of the user")
SNAPSHOT = _answer(messages.SnapshotTaken(42, "2c26b46b", "shop.albatross/snapshots/42.npz"), "The snapshot is on disk")
FORGOTTEN = _answer(messages.Forgotten("ann", 44, 7, 44), "The user is forgotten")
SERIES = _answer(messages.Series(100, [100, 37], [3.5, 3.9], [0.9, 0.95], [0.6, 0.4]), "How it went so far")
VERSION = _answer(
    messages.Version(
        "0.1.0", "alb", {"rank": 5, "ridge": 1.0}, (1.0, 5.0), 0, 42, "9f86d081", "2c26b46b", "fcde2b2e", 3, 3, 0, 4, 30, "commit"
    ),
    "What is served, and how far it has come",
)
LINES = {
    200: ResponseSpec(
        LineAnswer,
        generate_examples=False,
        media_type=NDJSON,
        description="A status line for each line, in order",
        examples=[Example(value={"line": 1, "status": 200, "seq": 42, "applied": True, "duplicate": False, "model_seq": 42})],
    )
}
