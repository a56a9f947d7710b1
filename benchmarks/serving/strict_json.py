"""The time to read a body strictly, beside msgspec alone: `python -m benchmarks.serving.strict_json`."""

import json
import timeit
from collections.abc import Callable
from functools import partial

import msgspec

from albatross.core.errors import InvalidInput
from albatross.service.api.requests import Feedback, Recommend
from albatross.service.http.strict_json import read_as
from benchmarks import machine

BODIES: dict[str, tuple[bytes, type[Recommend] | type[Feedback]]] = {
    "a recommendation": (b'{"user": "ann"} ', Recommend),
    "a rating": (b'{"event_id": "e-1", "user": "ann", "item": "tea", "rating": 4.5}', Feedback),
    "1,000 candidates": (json.dumps({"user": "ann", "candidates": [f"item-{number}" for number in range(1_000)]}).encode(), Recommend),
    "30,000 escaped quotes": (b'[[[[[[[[["' + b'\\"' * 30_000, Recommend),
    "20,000 keys": (json.dumps({f"key{number}": 1 for number in range(20_000)}).encode(), Recommend),
}


def microseconds(read: Callable[[bytes], object], body: bytes) -> float:
    """The quickest of a few runs, whatever the result."""

    def attempt() -> None:
        try:
            read(body)
        except (InvalidInput, msgspec.MsgspecError):
            return

    number = max(1, int(0.05 / max(timeit.timeit(attempt, number=1), 1e-6)))
    return min(timeit.repeat(attempt, number=number, repeat=5)) / number * 1e6


def main() -> None:
    print(*machine.describe(), "", "| body | strict, µs | msgspec alone, µs |", "| --- | --- | --- |", sep="\n")
    for name, (body, kind) in BODIES.items():
        strict = microseconds(partial(_strictly, kind), body)
        alone = microseconds(msgspec.json.Decoder(kind).decode, body)
        print(f"| {name}, {len(body):,} bytes | {strict:,.1f} | {alone:,.1f} |")


def _strictly(kind: type[Recommend] | type[Feedback], body: bytes) -> object:
    return read_as(body, kind)


if __name__ == "__main__":
    main()
