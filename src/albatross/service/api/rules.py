"""What items can be described by, and what a recommendation may demand of them: a small grammar in JSON."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from albatross.service.api.values import MOST_SHOWN, HotId, Id

MOST_ATTRIBUTES = 64
"""Attributes of one item, and labels in one list, at most."""
MOST_NAMES = 256
"""Names of attributes in a folder, at most."""
MOST_CONDITIONS = 100
"""Conditions in one `where`, at most."""
DEEPEST = 16
"""How deep conditions may be nested."""
MOST_QUOTAS = 8
"""Quotas in one request, at most."""

Labels = Annotated[list[Id], Meta(max_length=MOST_ATTRIBUTES)]
HotLabels = Annotated[list[HotId], Meta(max_length=MOST_ATTRIBUTES)]
Attributes = Annotated[dict[Id, Id | Labels | float], Meta(max_length=MOST_ATTRIBUTES)]
"""By name: a label, a list of labels, or a number."""
By = Literal["policy", "popular", "new"]
"""What to rank by: the policy; the sum of an item's ratings above the bottom of the scale; the order in which items came."""


class Where(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename={"is_": "is", "from_": "from"}):
    """A condition on items, in one of five forms; the other fields are left out.

    {"attribute": "category", "is": "tea"} or "is": ["tea", "mate"]: one of these is a label of the item.
    {"attribute": "price", "from": 1, "to": 5}: the number is in this range, ends included; one of both may be left out.
    {"all": […]}, {"any": […]}, {"none": […]}: all, one at least, none of these conditions hold.
    """

    all: list["Where"] | None = None
    any: list["Where"] | None = None
    none: list["Where"] | None = None
    attribute: HotId | None = None
    is_: HotId | HotLabels | None = None
    from_: float | None = None
    to: float | None = None


class Quota(Struct, frozen=True, forbid_unknown_fields=True):
    """At most so many items of a slate may share a label of this attribute."""

    attribute: Id
    most: Annotated[int, Meta(ge=1, le=MOST_SHOWN)]


class Fresh(Struct, frozen=True, forbid_unknown_fields=True):
    """Of the places of a slate, this share at least goes to items that were shown fewer than `below` times, drawn at random.

    Of ten places with the share 0.1, one; of four places, one in four of ten slates.
    """

    share: Annotated[float, Meta(gt=0, le=1)]
    below: Annotated[int, Meta(ge=1, le=1_000_000)] = 10


Quotas = Annotated[list[Quota], Meta(max_length=MOST_QUOTAS)]


def schema_of_where(reference: str) -> dict[str, Any]:
    """What the type cannot say in OpenAPI: there are five forms, and no mixture of them."""
    name = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"}
    names = {"type": "array", "items": name, "maxItems": MOST_ATTRIBUTES, "minItems": 1}
    number = {"type": "number"}

    def form(required: list[str], **properties: Any) -> dict[str, Any]:
        left_out = {field: {"type": "null"} for field in ("all", "any", "none", "attribute", "is", "from", "to")}
        return {"type": "object", "required": required, "properties": {**left_out, **properties}, "additionalProperties": False}

    several = {"type": "array", "items": {"$ref": reference}, "minItems": 1, "maxItems": MOST_CONDITIONS}
    return {
        "title": "Where",
        "description": Where.__doc__,
        "anyOf": [
            form(["attribute", "is"], attribute=name, **{"is": {"anyOf": [name, names]}}),
            form(["attribute", "from"], attribute=name, to={"anyOf": [number, {"type": "null"}]}, **{"from": number}),
            form(["attribute", "to"], attribute=name, to=number),
            *(form([word], **{word: several}) for word in ("all", "any", "none")),
        ],
    }
