"""The settings in force and their sources: a flag, the file, the first event of the log, or the default."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from albatross.core.policy import Policy
from albatross.service.engine.learned.options import Options, policy_of
from albatross.service.settings.file import as_toml, file_beside, read_file
from albatross.service.settings.kinds import as_time
from albatross.service.settings.table import BY_KEY, SET, SETTINGS, Setting
from albatross.service.storage.events import Genesis

DEFAULT, GENESIS, FLAG, LOG = "default", "genesis", "flag", "log"


class InForce(NamedTuple):
    value: Any
    source: str
    """The path of the file, or one of the words above."""


def settle(
    folder: Path | None, given: Mapping[str, Any], config: Path | None = None, accepted: Mapping[str, Setting] = BY_KEY
) -> dict[str, InForce]:
    """Every setting by its key. A given value (not None) overrides the file in the folder, or the one that `config` names."""
    path = config if folder is None else file_beside(folder, config)
    told = {} if path is None else read_file(path, accepted)
    found = {}
    for key, setting in accepted.items():
        if given.get(key) is not None:
            found[key] = InForce(given[key], FLAG)
        elif path is not None and key in told:
            found[key] = InForce(told[key], str(path))
        else:
            found[key] = InForce(setting.default, DEFAULT)
    return found


def options_of(settled: Mapping[str, InForce], **further: Any) -> Options:
    """The options of an engine. A setting that the first event fixes is None if it was not given: then any value there is accepted."""
    given: dict[str, Any] = {key: None if BY_KEY[key].genesis and told.source == DEFAULT else told.value for key, told in settled.items()}
    given["closed"] = given["closed_catalogue"]
    given["sources"] = {key: told.source for key, told in settled.items() if told.source not in (DEFAULT, GENESIS, FLAG, LOG)}
    return Options(**{name: given[name] for name in Options.__struct_fields__ if name in given} | further)


def with_genesis(settled: Mapping[str, InForce], genesis: Genesis, rewards: Mapping[str, float]) -> dict[str, InForce]:
    """The same for a folder with a log: the settings in its first event count. `rewards`: the current rewards of named events."""
    fixed = {setting.key: getattr(genesis, setting.genesis) for setting in SETTINGS if setting.genesis is not None}
    found = {key: InForce(fixed[key], GENESIS) if key in fixed else told for key, told in settled.items()}
    found["policy"] = InForce(policy_of(genesis), GENESIS)
    if rewards != genesis.events:
        found["events"] = InForce(rewards, LOG)
    return found


def described(settled: Mapping[str, InForce]) -> list[str]:
    """One line per setting, in the syntax of the file, with its source."""
    lines = []
    for key, told in settled.items():
        value = told.value
        if isinstance(value, Policy):
            lines.append(f"{key} = {as_toml(value.policy_name())} ({told.source})")
            given = {name: each for name, each in value.parameters().items() if each is not None}
            key, value = SET, given
        elif key == "silence" and value is not None:
            value = f"{as_time(value[0])}={value[1]:g}"
        elif key == "retention" and value is not None:
            value = as_time(value)
        lines.append(f"{key}: not set" if value in (None, (), {}) else f"{key} = {as_toml(value)} ({told.source})")
    return lines
