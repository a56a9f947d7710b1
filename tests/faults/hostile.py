"""Bodies that are almost right: sends them to a server and counts the answers by status. `make chaos` sends ten thousand."""

import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from faults.chaos import Nursery

from albatross.service.storage.home import home_of
from benchmarks.serving.loopback import Connection

POSTS = (
    "/v1/recommend",
    "/v1/feedback",
    "/v1/feedback/batch",
    "/v1/rewards",
    "/v1/items/upsert",
    "/v1/items/batch",
    "/v1/items/similar",
    "/v1/items/retire",
    "/v1/items/restore",
    "/v1/users/get",
    "/v1/users/forget",
    "/v1/users/join",
)
FIELDS = (
    "user",
    "visitor",
    "item",
    "event_id",
    "decision_id",
    "request_id",
    "rating",
    "n",
    "candidates",
    "exclude",
    "exclude_seen",
    "explain",
    "event",
    "events",
    "where",
    "quotas",
    "fresh",
    "by",
    "attributes",
    "available_from",
    "in_stock",
)
VALUES = (
    *(
        "null",
        "true",
        "0",
        "-1",
        "1",
        "3",
        "4.5",
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "9" * 400,
        "1e-400",
        '"4"',
        '""',
        '"rated"',
        '"u"',
        '"i"',
        '"click"',
        '{"click": 1, "purchase": 5}',
        '{"click": 1e9}',
        '{"attribute": "a", "is": "x"}',
        '{"all": [{"attribute": "a", "to": 1}]}',
        '{"none": [' * 40 + "{}" + "]}" * 40,
        '{"share": 0.5}',
        '[{"attribute": "a", "most": 1}]',
        '{"a": "x", "b": ["x"], "c": 1}',
        '"popular"',
    ),
    *(
        '"\\u0000"',
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '"\\u202e"',
        '"../../etc"',
        f'"{"x" * 257}"',
        f'"{"ß" * 128}"',
        '["i", "j"]',
        '["i", "i"]',
    ),
    *("[]", "{}", "[[[[[[[[[[1]]]]]]]]]]", '{"a": {"b": []}}', '"\x01"', '"\\x"', "tru", "[1,]", "'u'"),
)
NOISE = b'{}[]",:0123456789eE+-.truefalsnNaIiy \\u\x00\xff'


def almost_right(chance: random.Random) -> bytes:
    """A body with the right fields and any values, sometimes a field twice, sometimes with a byte changed, sometimes noise."""
    if chance.random() < 0.1:
        return bytes(chance.choices(NOISE, k=chance.randrange(60)))
    names = chance.choices(FIELDS, k=chance.randrange(5))
    if chance.random() < 0.8:
        names = list(dict.fromkeys(names))
    body = ("{" + ", ".join(f"{json.dumps(name)}: {chance.choice(VALUES)}" for name in names) + "}").encode()
    if chance.random() < 0.2:
        position = chance.randrange(len(body))
        body = body[:position] + bytes(chance.choices(NOISE, k=chance.randrange(3))) + body[position + 1 :]
    return body


async def send_storm(port: int, bodies: int, seed: int = 0) -> Counter[int]:
    """How often each status was the answer. A connection that ends is an error: no body may end one."""
    chance = random.Random(seed)
    connection = await Connection.open(port)
    answers: Counter[int] = Counter()
    for _ in range(bodies):
        status, content = await connection.post(chance.choice(POSTS), almost_right(chance))
        answers[status] += 1
        if status != 200 and json.loads(content)["status"] != status:
            raise ValueError(f"not a problem document: {content!r}")
    connection.close()
    return answers


async def storm(bodies: int) -> Counter[int]:
    with tempfile.TemporaryDirectory() as scratch:
        nursery = await Nursery.open(home_of(Path(scratch) / "service"), Path(scratch))
        await nursery.tell("start")
        connection = await Connection.open(nursery.port)
        while (await connection.ask("GET", "/readyz"))[0] != 200:
            pass
        connection.close()
        answers = await send_storm(nursery.port, bodies)
        answers[-1] = await nursery.tell("stop")
        await nursery.close()
    return +answers


def main(bodies: int) -> int:
    answers = asyncio.run(storm(bodies))
    crashes = answers.pop(-1, 0)
    failures = sum(count for status, count in answers.items() if status >= 500)
    print(f"{bodies:,} bodies: {failures} × 5xx, {crashes} crashes; answers by status {dict(sorted(answers.items()))}")
    return 1 if failures or crashes else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
