"""Docstrings as Markdown: examples become code blocks, lines about parameters a list, and the parameters of recipes a table."""

import ast
import re
from typing import Any

import griffe

DESCRIBED = re.compile(r"(\w+(?:, \w+)*): ")


class AsMarkdown(griffe.Extension):
    """Rewrites every docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            names = {parameter.name for parameter in obj.parameters} if isinstance(obj, griffe.Function) else set()
            obj.docstring.value = "\n\n".join(_paragraph(part, names) for part in obj.docstring.value.split("\n\n"))

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        rows = [row for member in cls.members.values() if isinstance(member, griffe.Attribute) and (row := _parameter(member))]
        if rows and cls.docstring is not None:
            table = "\n".join(["| parameter | default | meaning |", "| --- | --- | --- |", *rows])
            cls.docstring.value += f"\n\n{table}"


def _parameter(attribute: griffe.Attribute) -> str | None:
    """A row about a field made by `parameter(default, meaning, …)`, whose value is the default from now on."""
    value = attribute.value
    if not (isinstance(value, griffe.ExprCall) and str(value.function) == "parameter"):
        return None
    default, meaning = value.arguments[:2]
    attribute.value = default
    return f"| `{attribute.name}` | {default} | {ast.literal_eval(str(meaning))} |"


def _paragraph(text: str, parameters: set[str]) -> str:
    if text.startswith(">>>"):
        return f"```python\n{text}\n```"
    if not ((first := DESCRIBED.match(text)) and set(first[1].split(", ")) <= parameters):
        return text
    lines = []
    for line in text.split("\n"):
        described = DESCRIBED.match(line)
        if described and set(described[1].split(", ")) <= parameters:
            names = ", ".join(f"`{name}`" for name in described[1].split(", "))
            lines.append(f"- {names}: {line[described.end() :]}")
        else:
            lines.append(f"  {line}")
    return "\n".join(lines)
