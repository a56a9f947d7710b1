"""What no schema can say, for schemathesis: an id stands for one content, some candidate must be left that the user may be shown,
a rating of a decision is of its user and of its items, and an event has a name that stands for a reward.

So a request that is right by the schema gets ids of its own, as long as those it had. What is wrong by the schema stays as it is.
"""

import itertools
from typing import Any

import schemathesis

_numbers = itertools.count()


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: "schemathesis.Case[Any]", kwargs: dict[str, Any]) -> None:
    if case.meta is None or not case.meta.generation.mode.is_positive or not isinstance(case.body, dict):
        return
    body: dict[str, Any] = case.body
    if "event_id" in body and body.get("decision_id"):
        body["decision_id"] = "nobody was given this one"
    if "event_id" in body and body.get("event"):
        body["event"] = "click"
    if isinstance(body.get("events"), dict):
        body["events"] = {**dict(list(body["events"].items())[:99]), "click": 1}
    if "item" in body and "user" not in body:  # or others who name the item would find that it is not there
        for name in ("in_stock", "available_from", "available_until"):
            body.pop(name, None)
    if "user" in body:  # few conditions hold for any item
        body.pop("where", None)
    for name in ("event_id", "request_id", *(["user"] if body.get("candidates") else [])):
        if body.get(name):
            body[name] = chr(0x4E00 + next(_numbers)) * len(body[name])
    if body.get("candidates"):  # the first of them is not retired, whatever was retired before
        body["candidates"] = [chr(0x4E00 + next(_numbers)) * len(body["candidates"][0]), *body["candidates"][1:]]
    if body.get("candidates") and body.get("exclude"):
        body["exclude"] = [item for item in body["exclude"] if item not in body["candidates"]]
