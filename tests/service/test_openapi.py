"""The service does what its OpenAPI says: schemathesis makes requests from it, right and wrong ones, and judges the answers."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from live import Live
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from albatross.service.batches import NDJSON
from albatross.service.gate import ENDLESS
from albatross.service.http import PATHS

pytestmark = pytest.mark.xdist_group("service-http")

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@schemathesis.serializer(NDJSON)
def as_it_is(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def promised(shop: Live) -> Any:
    return schemathesis.openapi.from_url(f"http://localhost:{shop.port}/schema")


def test_every_path_is_promised(promised: Any) -> None:
    assert set(promised) == set(PATHS) - {"/schema"}


@pytest.mark.parametrize("path", [path for path in PATHS if path not in (ENDLESS, "/schema")])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["right", "wrong"])
def test_no_server_error_and_no_undocumented_answer(promised: Any, path: str, mode: GenerationMode) -> None:
    for operation in promised[path].values():
        if mode is GenerationMode.NEGATIVE and operation.method == "get":
            continue  # there is nothing in it that could be wrong

        @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
        @given(case=operation.as_strategy(generation_mode=mode))
        def judge(case: Any) -> None:
            case.call_and_validate(checks=CHECKS)

        judge()
