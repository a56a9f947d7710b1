"""The configuration file of a service: read, checked, and shown as an example."""

import json
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from albatross import policies
from albatross.core.errors import InvalidInput, unknown
from albatross.core.policy import Policy
from albatross.service.settings.kinds import PATH
from albatross.service.settings.table import BY_KEY, SET, SETTINGS, Setting
from albatross.service.storage.folder import SETTINGS as FILE

WIDTH = 118


def read_file(path: Path, accepted: Mapping[str, Setting] = BY_KEY) -> dict[str, Any]:
    """What a configuration file says. Refuses, with the name of the file and of the key, whatever is not accepted."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}; accepted: a configuration file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} is not TOML: {error}") from error
    try:
        return _read(given, path.parent, accepted)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def file_beside(folder: Path, given: Path | None = None) -> Path | None:
    """The configuration file of a folder: the one given, or the one in it, if there is any."""
    beside = folder / FILE
    return given if given is not None else beside if beside.exists() else None


def _read(given: dict[str, Any], folder: Path, accepted: Mapping[str, Setting]) -> dict[str, Any]:
    parameters = given.pop(SET, None)
    for key in given:
        if key not in accepted:
            if key in BY_KEY:
                where = "the file of the whole process" if BY_KEY[key].process else "the file in the folder of each service"
                raise InvalidInput(f"{key} belongs into {where}; accepted here: {', '.join(accepted)}")
            raise unknown("key", key, [*accepted, SET])
    values = {key: BY_KEY[key].kind.read(key, value) for key, value in given.items()}
    for key, value in values.items():
        if BY_KEY[key].kind is PATH:
            values[key] = folder / value
    if parameters is not None and "policy" not in values:
        raise InvalidInput(f"{SET} is given without policy; accepted: beside the policy whose parameters these are")
    if "policy" in values:
        values["policy"] = _policy(values["policy"], {} if parameters is None else parameters, folder)
    return values


def _policy(name: str, parameters: Any, folder: Path) -> Policy:
    if not isinstance(parameters, dict):
        raise InvalidInput(f"{SET} is {parameters!r}; accepted: a table of parameters of the policy, as {{rank = 5}}")
    return policies.create(name, parameters, folder)


def example() -> str:
    """A file with every key, each as a comment with what it means: what is uncommented counts."""
    return "".join(f"{line}\n" for line in _example())


def _example() -> Iterator[str]:
    yield f"# Settings of `albatross serve`. Save it as {FILE} in the folder that is served, or say where it is by --config."
    yield "# Flags on the command line win over what stands here. Relative paths begin at the folder of this file."
    for setting in SETTINGS:
        yield ""
        yield from (f"# {line}" for line in textwrap.wrap(in_file(setting), WIDTH, break_on_hyphens=False))
        yield f"#{setting.key} = {as_toml(setting.example)}"
        if setting.key == "policy":
            yield f"#{SET} = {{}} # parameters of the policy, as {{rank = 5}}"


def in_file(setting: Setting) -> str:
    """What it means, for somebody who writes a file and no flags."""
    text = setting.meaning.replace("; may be given several times", "")
    for other in SETTINGS:
        text = text.replace(f"{other.flag} ", f"{other.key} ").replace(f"{other.flag},", f"{other.key},")
    fixed = " Fixed when the folder is made." if setting.genesis else ""
    return f"{text}{fixed}"


def as_toml(value: Any) -> str:
    """A value of a setting, as it may stand in a file.

    >>> as_toml({"click": 1.0}), as_toml((1.0, 5.0)), as_toml("text"), as_toml(False)
    ('{click = 1}', '[1, 5]', '"text"', 'false')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {as_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)
