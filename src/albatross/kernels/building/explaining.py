"""Compiler errors as one sentence: file, line, probable cause, and what is accepted."""

import linecache
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numba.core.errors import NumbaError, UnsupportedBytecodeError

from albatross.kernels.building.sources import implementers, sources_of
from albatross.kernels.errors import InvalidInput

COMPLAINTS = (NumbaError, UnsupportedBytecodeError)
"""The exceptions of the compiler."""

PLACE = re.compile(r'(?: at|[Rr]aised from) (\S[^\n"]*?\.py) \((\d+)\)')
QUOTED = re.compile(r'File "([^"\n]+\.py)", line (\d+)')
"""Patterns for the lines that the compiler names, innermost first."""

NO_ROOM = ("NRT required", "Only accept returning of array")
"""The compiler's message for code that allocates an array, a list or a dictionary."""

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""Colour codes in messages, if the package colorama is installed."""

_ATTRIBUTE = re.compile(r"Unknown attribute '(\w+)' of type (\w+)")
_GLOBAL = re.compile(r"Untyped global name '(\w+)':? (.*)")
_UNDEFINED = re.compile(r"name '(\w+)' is not defined|(?:Variable|variable) '(\w+)' (?:is not defined|referenced before)")
_UNIFY = re.compile(r"Cannot unify (.+?) and (.+?) for '(\w+?)(?:\.\d+)?'")
_UNSUPPORTED = re.compile(r"unsupported NumPy function '([\w.]+)'")
_CALL = re.compile(r"No implementation of function Function\(<(?:built-in function|function|ufunc|intrinsic|class) '?([\w.]+)")

RETURNED = {
    "select": "two numbers, the position of a candidate (int) and its propensity (float)",
    "suppose": "two numbers, the position of a candidate (int) and its propensity (float)",
    "believe": "the length of the belief (int)",
    "width": "a number (float)",
}
"""What the operations of a policy return."""


class CannotCompile(InvalidInput):
    """The functions of a policy cannot be compiled."""


def explained(error: BaseException, state_type: type | None, arguments: Sequence[Any]) -> CannotCompile:
    """The compiler's error about the code of a type of state, called with these arguments."""
    text = COLOUR.sub("", str(error))
    place = _place(text, state_type)
    sentence = _cause(text, place, state_type, arguments)
    if place is None:
        return CannotCompile(sentence)
    file, line = place
    code = linecache.getline(file, line).strip()
    return CannotCompile(f"{_short(file)}, line {line}{f' ({code})' if code else ''}: {sentence}")


def _place(text: str, state_type: type | None) -> tuple[str, int] | None:
    """The innermost line in the policy's own files that the compiler names, or that contains the unknown name."""
    own = _own_files(state_type)
    linecache.checkcache()
    for file, line in (*PLACE.findall(text), *QUOTED.findall(text)):
        if Path(file).resolve() in own:
            return str(Path(file).resolve()), int(line)
    undefined = _UNDEFINED.search(text)
    if undefined is not None:
        name = re.compile(rf"\b{undefined[1] or undefined[2]}\b")
        for path in own:
            for number, code in enumerate(linecache.getlines(str(path)), start=1):
                if name.search(code.partition("#")[0]):
                    return str(path), number
    return None


def _own_files(state_type: type | None) -> list[Path]:
    found = [sources_of(owner) for owner in (*implementers(state_type), state_type) if owner is not None]
    return list(dict.fromkeys((sources.root / place).resolve() for sources in found if sources is not None for place in sources.files))


def _cause(text: str, place: tuple[str, int] | None, state_type: type | None, arguments: Sequence[Any]) -> str:
    state = "the state" if state_type is None else state_type.__name__
    if place is None and PLACE.search(text):  # the policy does not fit our loop
        files = _own_files(state_type)
        where = _short(str(files[0])) if files else state
        operation = _CALL.search(text)
        if operation is not None and "raised a specific error" not in text and operation[1] in ("select", "update"):
            return (
                f"{where}: nothing says what {operation[1]} does on {state}; accepted: a function with @implements({operation[1]}, {state})"
            )
        asked = operation[1] if operation is not None and operation[1] in RETURNED else "select"
        return f"{where}: {asked} returns something else; accepted: {RETURNED[asked]}"
    if any(words in text for words in NO_ROOM):
        return (
            "kernels may not allocate (no new array, list, dictionary or string); accepted: working arrays from scratch, filled in a loop"
        )
    if (found := _UNSUPPORTED.search(text)) is not None:
        return f"compiled code has no {found[1]}; accepted: a loop, or what albatross.kernels has"
    if (found := _ATTRIBUTE.search(text)) is not None:
        return _missing_field(found[1], found[2], arguments)
    if (found := _UNIFY.search(text)) is not None:
        return f"{found[3]} is once {_kind(found[1])} and once {_kind(found[2])}; accepted: one type for each variable"
    if (found := _GLOBAL.search(text)) is not None:
        if "function" in found[2]:
            return f"{found[1]} is no kernel; accepted: @kernel above it (from albatross.kernels.compiling import kernel)"
        return f"compiled code cannot use {found[1]}, which is no number, array or kernel; accepted: a field of settings, state or scratch"
    if (found := _UNDEFINED.search(text)) is not None:
        return f"{found[1] or found[2]} is not defined"
    if "exception_match" in text:
        return "compiled code knows no kinds of exceptions; accepted: a condition in the place of try and except"
    calls = _CALL.findall(text)
    if len(calls) > 1:
        return f"compiled code cannot do {calls[1]!r} with what it is given here"
    first = next((line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Failed in")), text)
    return f"compiled code cannot do this: {first.partition(' Raised from ')[0].rstrip('.')}"


def _missing_field(field: str, owner: str, arguments: Sequence[Any]) -> str:
    for part in (part for argument in arguments for part in getattr(argument, "parts", (argument,))):
        if type(part).__name__ == owner and hasattr(part, "_fields"):
            return f"{owner} has no field {field!r}; it has: {', '.join(part._fields)}"
    if owner == "NumPyRandomGeneratorType":
        return f"compiled code has no random.{field}; accepted: random.random(), random.normal(), random.integers(low, high) and others"
    return f"{_kind(owner)} has no {field!r} in compiled code"


def _kind(words: str) -> str:
    """A Numba type in plain words."""
    kinds = {"array": "an array", "float": "a number", "int": "a whole number", "Literal[int]": "a whole number", "bool": "true or false"}
    kinds |= {
        "none": "nothing",
        "unicode": "a string",
        "Literal[str]": "a string",
        "reflected": "a list",
        "list": "a list",
        "Tuple": "a tuple",
    }
    kinds |= {"UniTuple": "a tuple"}
    return next((kind for start, kind in kinds.items() if words.startswith(start)), words)


def _short(file: str) -> str:
    path, here = Path(file), Path.cwd().resolve()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file
