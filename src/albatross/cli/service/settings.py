"""The settings of a service as flags, for the commands that take them."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_origin

from cyclopts import Parameter

from albatross.cli.arguments import parse_policy
from albatross.service.http.process import ListenAddress
from albatross.service.settings.force import InForce, settle
from albatross.service.settings.table import BY_KEY, SETTINGS, Setting
from albatross.service.storage.folder import SETTINGS as FILE
from albatross.service.storage.home import is_address

CONFIG = f"A configuration file (TOML) with any of these settings; if not given, {FILE} in the folder, if there is one. Flags override it."
SET = "Parameter of the policy, as key=value; may be given several times, after --policy."


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose last parameter is `**flags`: it gets the settings that were given as flags."""
    signature = inspect.signature(command)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    flags = [_flag("config", Path, CONFIG)]
    for setting in SETTINGS:
        flags.append(_flag(setting.key, setting.kind.word, setting.meaning))
        if setting.key == "policy":
            flags.append(_flag("setting", list[str], SET, name="--set"))
    command.__signature__ = signature.replace(parameters=[*own, *flags])  # type: ignore[attr-defined]
    return command


def _flag(key: str, word: Any, meaning: str, name: str | None = None) -> inspect.Parameter:
    negative = () if get_origin(word) is list else None
    how = Parameter(name=name, help=meaning, allow_leading_hyphen=key == "scale", negative=negative)
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[word | None, how])


def folder_of(where: str) -> Path | None:
    """The folder that may hold a configuration file; a database has none."""
    return None if is_address(where) else Path(where)


def settled(folder: Path | None, flags: Mapping[str, Any], accepted: Mapping[str, Setting] = BY_KEY) -> dict[str, InForce]:
    """Every setting, from the flags of a command and the file."""
    given = {key: BY_KEY[key].kind.read(BY_KEY[key].flag, word) for key, word in flags.items() if key in BY_KEY and word is not None}
    if "policy" in given:
        given["policy"] = parse_policy(given["policy"])
    return settle(folder, given, flags.get("config"), accepted)


def address_of(found: Mapping[str, InForce]) -> ListenAddress:
    """Where to listen. With several shops, each has its own allowed origins."""
    value = {key: told.value for key, told in found.items()}
    return ListenAddress(
        value["host"],
        value["port"],
        value["certificate"],
        value["private_key"],
        value["allow_host"],
        value.get("allow_origin", ()),
    )
