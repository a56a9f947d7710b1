"""The service does what its OpenAPI says: schemathesis makes requests from it, right and wrong ones, and judges the answers."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from live import Live

from albatross.service.api.requests import Feedback
from albatross.service.api.route import JSON, SCHEMA, Route
from albatross.service.api.routes import ROUTES
from albatross.service.http.access.keys import SCOPES, Keys
from albatross.service.http.documents.openapi import describe

EXAMPLES = 25
"""Random requests for each operation; those at the edges of the schema come on top of it."""

SHORT_STREAMS = """
from albatross.service.http.news import News
tell = News._tell_once
async def tell_and_end(self):
    await tell(self)
    self._end_all()
News._tell_once = tell_and_end
"""
"""Schemathesis reads every answer to its end, so streams get one."""


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return describe((-2.5, 7.0), key_needed=False)


def test_every_route_is_described_and_nothing_else(description: dict[str, Any]) -> None:
    described = {(method, path) for path, operations in description["paths"].items() for method in operations}
    assert described == {(route.method.lower(), route.path) for route in ROUTES}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_a_description_has_examples_and_all_refusals_are_problems(description: dict[str, Any], route: Route) -> None:
    operation = description["paths"][route.path][route.method.lower()]
    if route.reads is not None:
        shown = [content.get("examples", {}) for content in operation["requestBody"]["content"].values()]
        assert [example["value"] for examples in shown for example in examples.values()] == [body for _, body in route.examples]
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            assert list(response["content"]) == ["application/problem+json"]
            assert response["content"]["application/problem+json"]["example"]["status"] == int(status)
    assert set(map(str, route.statuses)) <= set(operation["responses"])
    if route.gives == JSON and route.answer is not None:
        assert operation["responses"]["200"]["content"][JSON]["example"]
    assert ("security" in operation) == (route.scope is not None)


def test_the_scale_of_the_folder_is_in_it(description: dict[str, Any]) -> None:
    rating = description["components"]["schemas"][Feedback.__name__]["properties"]["rating"]
    assert (rating["minimum"], rating["maximum"]) == (-2.5, 7.0)


def test_where_keys_are_needed_it_says_so() -> None:
    expected: dict[bool, list[dict[str, list[str]]]] = {True: [{"key": []}], False: [{}, {"key": []}]}
    for needed, security in expected.items():
        assert describe((1, 5), needed)["paths"]["/v1/recommend"]["post"]["security"] == security


@pytest.mark.parametrize("locked", [False, True], ids=["without keys", "with a key"])
def test_schemathesis_finds_nothing(tmp_path: Path, locked: bool) -> None:
    """All its checks and phases, as they are by default. `fresh_ids` says what a schema cannot."""
    folder = tmp_path / "shop"
    folder.mkdir()
    headers = {"Authorization": f"Bearer {Keys(folder).create(SCOPES)}"} if locked else {}
    with Live(folder, "--events", "click=1,purchase=5", before=SHORT_STREAMS) as live:
        lines = [f'{{"event_id": "known-{number}", "user": "u{number % 7}", "item": "i{number}", "rating": 3}}' for number in range(30)]
        assert live.post("/v1/feedback/batch", "\n".join(lines), headers).status == 200
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{live.port}{SCHEMA}"]
        options = [f"--max-examples={EXAMPLES}", "--seed=1", "--generation-deterministic", "--no-color"]
        given = [argument for name, value in headers.items() for argument in ("--header", f"{name}: {value}")]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": "fresh_ids", "PYTHONPATH": str(Path(__file__).parent)}
        done = subprocess.run([*command, *options, *given], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
        tested = len(ROUTES) - 1  # it does not test the description itself
        assert f"{tested} selected / {tested} total" in done.stdout
        assert not [line for line in live.log if line["event"] in ("request failed", "unforeseen error", "a library complains")]
