"""The events of a folder, for other programs."""

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from albatross.core.errors import InvalidInput
from albatross.core.files import whole_file
from albatross.service.storage.events import (
    Adopt,
    Decided,
    Described,
    Event,
    Expire,
    Forget,
    Genesis,
    Item,
    Joined,
    Rated,
    Reacted,
    Retire,
    Rewards,
    erased_by,
)
from albatross.service.storage.reading import Progress, nothing, read_events
from albatross.service.storage.store import ReadableLog

KINDS = {
    Genesis: "genesis",
    Item: "item",
    Retire: "retire",
    Decided: "decision",
    Rated: "feedback",
    Reacted: "feedback",
    Rewards: "rewards",
    Described: "description",
    Joined: "join",
    Forget: "forget",
    Expire: "expire",
    Adopt: "adopt",
}
INTERNAL = ("reasons", "incarnation", "again", "outside", "number", "before")
"""Fields without meaning for other programs."""


def export_events(log: ReadableLog, path: Path, progress: Progress = nothing) -> int:
    """Write every event that was not erased to a `.jsonl` or `.parquet` file. Returns their number. Leaves the whole file or none."""
    if path.suffix not in (".jsonl", ".parquet"):
        raise InvalidInput(f"{path} is not a kind of file that can be written; accepted: a name ending in .jsonl or .parquet")
    with whole_file(path) as partial:
        if path.suffix == ".jsonl":
            return _write_lines(log, partial, progress)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as scratch:
            lines = Path(scratch) / "lines"
            count = _write_lines(log, lines, progress)
            _to_parquet(lines, partial)
        return count


def _write_lines(log: ReadableLog, path: Path, progress: Progress) -> int:
    count = 0
    with path.open("wb") as file:
        for seq, event in read_events(log, progress):
            file.write(msgspec.json.encode(as_object(seq, event)) + b"\n")
            count += 1
    return count


def as_object(seq: int, event: Event) -> dict[str, Any]:
    """An event as an object with named fields, for other programs."""
    named = {name: msgspec.to_builtins(getattr(event, name)) for name in event.__struct_fields__ if name not in INTERNAL}
    if isinstance(event, Expire):
        named = {"at": event.at, "erased": erased_by(event)}
    if isinstance(event, Decided):
        named["items"] = [{name: getattr(placed, name) for name in placed.__struct_fields__} for placed in event.items]
        named["rules"] = None if event.rules is None else msgspec.json.encode(event.rules).decode()
    if isinstance(event, Genesis | Adopt):
        named["parameters"] = json.dumps(event.parameters)
    if isinstance(event, Described):
        named["said"] = msgspec.json.encode(event.said).decode()
    if isinstance(event, Genesis | Rewards):
        named["events"] = json.dumps(event.events)
    return {"seq": seq, "kind": KINDS[type(event)], **named}


COLUMNS = {
    "seq": "BIGINT",
    "kind": "VARCHAR",
    "at": "DOUBLE",
    "user": "VARCHAR",
    "visitor": "VARCHAR",
    "item": "VARCHAR",
    "rating": "DOUBLE",
    "event_id": "VARCHAR",
    "event": "VARCHAR",
    "replaces": "BIGINT",
    "decision": "BIGINT",
    "mean": "DOUBLE",
    "score": "DOUBLE",
    "request_id": "VARCHAR",
    "model_seq": "BIGINT",
    "candidates": "VARCHAR[]",
    "exclude": "VARCHAR[]",
    "exclude_seen": "VARCHAR",
    "shown": "STRUCT(item VARCHAR, score DOUBLE, mean DOUBLE, propensity DOUBLE, explored BOOLEAN)[]",
}
"""Columns of the Parquet file: one row per event, null if the kind of event has no such field."""


def _to_parquet(lines: Path, target: Path) -> None:
    import duckdb  # slow to import, and needed only here

    source = {f'"{name}"': kind for name, kind in COLUMNS.items() if name != "shown"}  # in quotes, because some are SQL keywords
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in source.items())
    where = str(lines).replace("'", "''")
    quoted = str(target).replace("'", "''")
    with duckdb.connect(config={"threads": "1", "autoinstall_known_extensions": "false"}) as connection:
        connection.execute(
            f"""COPY (
                SELECT {", ".join(source)}, CASE WHEN kind = 'decision' THEN CAST(items AS {COLUMNS["shown"]}) END AS shown
                FROM read_json('{where}', format = 'newline_delimited', columns = {{{columns}, items: 'JSON'}},
                               maximum_object_size = 268435456)
            ) TO '{quoted}' (FORMAT parquet)"""
        )
