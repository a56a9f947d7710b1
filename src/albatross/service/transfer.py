"""Ratings into a folder, and events out of it."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from albatross.core.errors import InvalidInput
from albatross.service.engine import Engine
from albatross.service.events import Decided, Event, Forget, Genesis, Item, Rated, Retire
from albatross.service.log import Store
from albatross.service.messages import BadValue, Feedback, FeedbackBatch, Refusal, Refused, check_id, check_rating
from albatross.service.recovery import Progress, decoded, nothing

AT_ONCE = 5_000
"""Ratings imported in one commit."""

KINDS = {Genesis: "genesis", Item: "item", Retire: "retire", Decided: "decision", Rated: "feedback", Forget: "forget"}


class Imported(NamedTuple):
    applied: int
    known: int
    """Rows that an earlier import of the same file had brought already."""
    refused: list[tuple[int, str]]
    """Line and reason."""


def import_rows(
    engine: Engine, rows: Iterable[tuple[int, list[str | None] | None]], source: str, progress: Callable[[int], None] | None = None
) -> Imported:
    """Apply rows of user, item and rating, in their order. A bad row is refused by its line; the others are applied.

    `source` names the content: a row is applied once, however often its file is imported, so an import that was interrupted is simply
    done again. `progress` is told the number of rows done since the last call.
    """
    applied, known, seen = 0, 0, 0
    refused: list[tuple[int, str]] = []
    waiting: list[tuple[int, Feedback]] = []

    def send() -> None:
        nonlocal applied, known
        if waiting:
            answers = engine.ask(FeedbackBatch([event for _, event in waiting])).answers
            for (line, _), answer in zip(waiting, answers, strict=True):
                if isinstance(answer, Refusal):
                    refused.append((line, answer.detail))
                else:
                    known += answer.duplicate
                    applied += not answer.duplicate
        waiting.clear()

    for line, fields in rows:
        seen += 1
        try:
            waiting.append((line, _event(fields, f"{source}:{line}", engine.genesis)))
        except Refused as refusal:
            refused.append((line, str(refusal)))
        if len(waiting) == AT_ONCE:
            send()
        if seen % AT_ONCE == 0 and progress is not None:
            progress(AT_ONCE)
    send()
    if progress is not None:
        progress(seen % AT_ONCE)
    return Imported(applied, known, sorted(refused))


def _event(fields: list[str | None] | None, event_id: str, genesis: Genesis) -> Feedback:
    if fields is None:
        raise BadValue("it has not as many fields as the header")
    user, item, rating = fields
    if user is None or item is None:
        raise BadValue(f"the {'user' if user is None else 'item'} is missing")
    try:
        value = float(rating or "")
    except ValueError as error:
        raise BadValue(f"rating is {rating!r}; accepted: a number from {genesis.scale[0]:g} to {genesis.scale[1]:g}") from error
    check_id("user", user)
    check_id("item", item)
    check_rating(value, genesis.scale)
    return Feedback(event_id, value, None, user, item)


def content_name(path: Path) -> str:
    """A name for the content of a file, wherever the file is."""
    with path.open("rb") as file:
        return f"import:{hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=12)).hexdigest()}"


def export_events(store: Store, path: Path, progress: Progress = nothing) -> int:
    """Write every event that was not erased to a `.jsonl` or `.parquet` file; returns how many. Leaves the whole file or none."""
    unfinished = path.with_name(path.name + ".unfinished")
    lines = unfinished if path.suffix == ".jsonl" else path.with_name(path.name + ".lines")
    if path.suffix not in (".jsonl", ".parquet"):
        raise InvalidInput(f"{path} is not a kind of file that can be written; accepted: a name ending in .jsonl or .parquet")
    try:
        count = 0
        with lines.open("wb") as file:
            for seq, event in _events(store, progress):
                file.write(msgspec.json.encode(as_object(seq, event)) + b"\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        if path.suffix == ".parquet":
            _to_parquet(lines, unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
        lines.unlink(missing_ok=True)
    return count


def _events(store: Store, progress: Progress) -> Iterator[tuple[int, Event]]:
    for first, bodies in store.read():
        yield from zip(*decoded(first, bodies), strict=True)
        progress(first + len(bodies) - 1, store.head.seq)


def as_object(seq: int, event: Event) -> dict[str, Any]:
    """An event as an object with names, for other programs."""
    named = {name: msgspec.to_builtins(getattr(event, name)) for name in event.__struct_fields__}
    if isinstance(event, Decided):
        named["items"] = [{name: getattr(placed, name) for name in placed.__struct_fields__} for placed in event.items]
        del named["explanation"]
    if isinstance(event, Genesis):
        named["parameters"] = json.dumps(event.parameters)
    return {"seq": seq, "kind": KINDS[type(event)], **named}


COLUMNS = {
    "seq": "BIGINT",
    "kind": "VARCHAR",
    "at": "DOUBLE",
    "user": "VARCHAR",
    "item": "VARCHAR",
    "rating": "DOUBLE",
    "event_id": "VARCHAR",
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
"""Of the Parquet file: one row per event, null where the kind of event has no such thing."""


def _to_parquet(lines: Path, target: Path) -> None:
    import duckdb  # heavy, and needed only here

    source = {f'"{name}"': kind for name, kind in COLUMNS.items() if name != "shown"}  # in quotes: some are words of SQL
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
