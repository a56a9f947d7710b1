"""The configuration file of a service: reading, checks, and an example."""

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
    """The settings in a configuration file. An error names the file and the key."""
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
    """The configuration file: the given one, or the one in the folder if there is one."""
    beside = folder / FILE
    return given if given is not None else beside if beside.exists() else None


def _read(given: dict[str, Any], folder: Path, accepted: Mapping[str, Setting]) -> dict[str, Any]:
    parameters = given.pop(SET, None)
    for key in given:
        if key not in accepted:
            if key in BY_KEY:
                where = "the file of the whole process" if BY_KEY[key].process else "the file in the folder of each service"
                raise InvalidInput(f"{key} belongs in {where}; accepted here: {', '.join(accepted)}")
            raise unknown("key", key, [*accepted, SET])
    values = {key: BY_KEY[key].kind.read(key, value) for key, value in given.items()}
    for key, value in values.items():
        if BY_KEY[key].kind is PATH:
            values[key] = folder / value
    if parameters is not None and "policy" not in values:
        raise InvalidInput(f"{SET} is given without policy; accepted: together with policy")
    if "policy" in values:
        values["policy"] = _policy(values["policy"], {} if parameters is None else parameters, folder)
    return values


def _policy(name: str, parameters: Any, folder: Path) -> Policy:
    if not isinstance(parameters, dict):
        raise InvalidInput(f"{SET} is {parameters!r}; accepted: a table of parameters of the policy, as {{rank = 5}}")
    return policies.create(name, parameters, folder)


def example() -> str:
    """A file with every key, commented out and explained. Uncomment a key to set it."""
    return "".join(f"{line}\n" for line in _example())


def _example() -> Iterator[str]:
    yield f"# Settings of `albatross serve`. Save this file as {FILE} in the folder that is served, or name it with --config."
    yield "# Flags on the command line override this file. Relative paths are relative to the folder of this file."
    for setting in SETTINGS:
        yield ""
        yield from (f"# {line}" for line in textwrap.wrap(in_file(setting), WIDTH, break_on_hyphens=False))
        yield f"#{setting.key} = {as_toml(setting.example)}"
        if setting.key == "policy":
            yield f"#{SET} = {{}} # parameters of the policy, as {{rank = 5}}"


def in_file(setting: Setting) -> str:
    """The meaning of a setting, in terms of keys instead of flags."""
    text = setting.meaning.replace("; may be given several times", "")
    for other in SETTINGS:
        text = text.replace(f"{other.flag} ", f"{other.key} ").replace(f"{other.flag},", f"{other.key},")
    fixed = " Fixed when the folder is made." if setting.genesis else ""
    return f"{text}{fixed}"


def as_toml(value: Any) -> str:
    """A value of a setting in TOML.

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
