"""Attributes of items, and conditions on them in a recommendation: a small grammar in JSON."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from albatross.service.api.values import MOST_SHOWN, HotId, Id

MOST_ATTRIBUTES = 64
"""Limit of attributes per item, and of labels in one list."""
MOST_NAMES = 256
"""Limit of attribute names in a folder."""
MOST_CONDITIONS = 100
"""Limit of conditions in one `where`."""
DEEPEST = 16
"""How deep conditions may be nested."""
MOST_QUOTAS = 8
"""Limit of quotas in one request."""

Labels = Annotated[list[Id], Meta(max_length=MOST_ATTRIBUTES)]
HotLabels = Annotated[list[HotId], Meta(max_length=MOST_ATTRIBUTES)]
Attributes = Annotated[dict[Id, Id | Labels | float], Meta(max_length=MOST_ATTRIBUTES)]
"""By name: a label, a list of labels, or a number."""
By = Literal["policy", "popular", "new"]
"""Rank by the policy; by the sum of an item's ratings above the bottom of the scale; by age, newest items first."""


class Where(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename={"is_": "is", "from_": "from"}):
    """A condition on items, in one of five forms; the other fields are left out.

    {"attribute": "category", "is": "tea"} or "is": ["tea", "mate"]: the item has one of these labels.
    {"attribute": "price", "from": 1, "to": 5}: the number is in this range, ends included; either end may be left out.
    {"all": […]}, {"any": […]}, {"none": […]}: all, at least one, or none of these conditions hold.
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
    """At least this share of the places of a slate goes to items that were shown fewer than `below` times, drawn at random.

    With share 0.1, one of ten places; with four places, one place in four of ten slates.
    """

    share: Annotated[float, Meta(gt=0, le=1)]
    below: Annotated[int, Meta(ge=1, le=1_000_000)] = 10


Quotas = Annotated[list[Quota], Meta(max_length=MOST_QUOTAS)]


def schema_of_where(reference: str) -> dict[str, Any]:
    """What the type cannot say in OpenAPI: the five forms cannot be mixed."""
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
