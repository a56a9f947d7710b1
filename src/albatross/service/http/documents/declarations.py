"""TypeScript declarations for the JavaScript client: the requests and answers of the table of routes."""

import json
from typing import Any

import msgspec

from albatross.service.api.errors import BY_CODE, Refused
from albatross.service.api.route import JSON
from albatross.service.api.routes import ROUTES

TEMPLATE = "{name}"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def declarations() -> str:
    """An interface for every request and answer, the table of routes, and a class for every error."""
    routes = [(route, route.answer) for route in ROUTES if route.takes == route.gives == JSON and route.answer is not None]
    kinds = list(dict.fromkeys(kind for route, answer in routes for kind in (route.reads, answer) if kind is not None))
    _, components = msgspec.json.schema_components(kinds, ref_template=TEMPLATE)
    parts = [f"export class {kind.__name__} extends Refused {{}}" for kind in BY_CODE.values() if kind is not Refused]
    parts += [_interface(name, schema) for name, schema in components.items()]
    lines = [
        f"  {json.dumps(route.path)}: {{ request: {'undefined' if route.reads is None else route.reads.__name__}; "
        f"answer: {answer.__name__} }};"
        for route, answer in routes
    ]
    parts.append("\n".join(["/** Paths, each with its request and its answer. */", "export interface Routes {", *lines, "}"]))
    return "\n\n".join(parts) + "\n"


def _interface(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    fields = [f"  {field}{'' if field in required else '?'}: {_type(each)};" for field, each in schema.get("properties", {}).items()]
    about = [f"/** {' '.join(schema['description'].split())} */"] if "description" in schema else []
    return "\n".join([*about, f"export interface {name} {{", *fields, "}"])


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
        return f"Array<{_type(schema['items'])}>" if schema.get("items") else "Array<unknown>"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) and values else 'unknown'}>"
    return _PLAIN.get(schema.get("type", ""), "unknown")
