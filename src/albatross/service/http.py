"""The engine over HTTP: every endpoint, and what it says of itself in OpenAPI."""

from typing import Annotated, Any

import msgspec
from litestar import Litestar, Request, Response, Router, get, post
from litestar.connection import ASGIConnection
from litestar.exceptions import HTTPException, InternalServerException
from litestar.handlers import BaseRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.params import Body
from litestar.response import ServerSentEvent

import albatross
from albatross.service import examples, messages
from albatross.service.batches import NDJSON, BatchOperation, answer_lines, read_lines
from albatross.service.express import MAX_BODY
from albatross.service.gate import ENDLESS
from albatross.service.messages import NotReady, Refused, StorageFailed
from albatross.service.metrics import CONTENT_TYPE
from albatross.service.problems import documented, on_failure, on_http_error, on_refused
from albatross.service.serving import Service, read_as
from albatross.service.strict_json import NotJson

PATHS = (
    "/v1/recommend",
    "/v1/feedback",
    "/v1/feedback/batch",
    "/v1/items/upsert",
    "/v1/items/retire",
    "/v1/items/restore",
    "/v1/users/get",
    "/v1/users/forget",
    "/v1/snapshot",
    "/v1/version",
    "/v1/series",
    ENDLESS,
    "/healthz",
    "/readyz",
    "/metrics",
    "/schema",
)

Connection = ASGIConnection[Any, Any, Any, Any]


class Alive(msgspec.Struct, frozen=True):
    alive: bool


class StrictRequest(Request[Any, Any, Any]):
    """Reads a body as the handler's type, strictly: no NaN, no infinity, no key twice, no number in quotation marks."""

    async def body(self) -> bytes:
        try:
            return await super().body()
        except InternalServerException:
            raise NotJson("the connection ended before the body did") from None

    async def json(self) -> Any:
        field = self.route_handler.parsed_data_field
        return read_as(await self.body(), Any if field is None else field.annotation)


def application(service: Service) -> Litestar:
    """Every endpoint of the service, as an ASGI application."""

    async def guard(connection: Connection, handler: BaseRouteHandler) -> None:
        await service.admit(connection.headers.get("authorization", ""), handler.opt["scope"])

    guarded = Router("/", guards=[guard], route_handlers=[*_questions(service), *_changes(service)])
    return Litestar(
        [guarded, *_open(service)],
        request_class=StrictRequest,
        request_max_body_size=MAX_BODY,
        exception_handlers={Refused: on_refused, HTTPException: on_http_error, Exception: on_failure},
        openapi_config=OpenAPIConfig(
            title="albatross",
            version=albatross.__version__,
            description="Recommendation from nothing, which learns from every rating, at once. Ids stand in bodies, never in paths.",
            path="/schema",
            render_plugins=[JsonRenderPlugin(path=["/", "/openapi.json"])],
            components=Components(security_schemes={"key": SecurityScheme(type="http", scheme="bearer")}),
            security=[{}, {"key": []}],
        ),
        logging_config=None,
    )


def _questions(service: Service) -> list[Any]:
    ask = service.ask

    @post("/v1/recommend", status_code=200, opt={"scope": "recommend"}, responses=documented(400, 422, 507) | examples.DECISION)
    async def recommend(data: Annotated[messages.Recommend, Body(examples=examples.RECOMMEND)]) -> messages.Decision:
        """Ask for items to show a user. New users and items appear by themselves, unless the catalogue is closed."""
        return await ask(data)  # type: ignore[no-any-return]

    @post("/v1/users/get", status_code=200, opt={"scope": "read"}, responses=documented(400, 404, 422) | examples.USER_VIEW)
    async def view_user(data: Annotated[messages.ViewUser, Body(examples=examples.USER)]) -> messages.UserView:
        """What is believed of a user: mean vector, ellipsoid, the items with the best scores."""
        return await ask(data)  # type: ignore[no-any-return]

    @get("/v1/version", opt={"scope": "read"}, responses=documented() | examples.VERSION)
    async def version() -> messages.Version:
        """Policy, parameters, the head of the log and the state id: a name for exactly what was learned."""
        return await ask(messages.AskVersion())  # type: ignore[no-any-return]

    @get("/v1/series", opt={"scope": "read"}, responses=documented() | examples.SERIES)
    async def series() -> messages.Series:
        """How it went so far: reward, calibration and optimism over groups of ratings."""
        return await ask(messages.AskSeries())  # type: ignore[no-any-return]

    @get(ENDLESS, opt={"scope": "read"}, responses=documented())
    async def stream() -> ServerSentEvent:
        """Version and series as server-sent events, whenever there is something new."""
        return ServerSentEvent(await service.open_stream())

    @get("/metrics", opt={"scope": "read"}, media_type=CONTENT_TYPE, responses=documented())
    async def metrics() -> Response[bytes]:
        """For Prometheus. No user and no item is named."""
        readiness = service.engine.readiness
        known = await ask(messages.AskVersion(state=False)) if readiness.ready else None
        return Response(service.metrics.expose(readiness, known, service.in_flight()), media_type=CONTENT_TYPE)

    return [recommend, view_user, version, series, stream, metrics]


def _changes(service: Service) -> list[Any]:
    ask = service.ask

    @post("/v1/feedback", status_code=200, opt={"scope": "feedback"}, responses=documented(400, 404, 409, 422, 507) | examples.ACCEPTED)
    async def feedback(data: Annotated[messages.Feedback, Body(examples=examples.FEEDBACK)]) -> messages.Accepted:
        """Send a rating, of a decision or by itself. It is on disk when this answers; the same event_id counts once, for ever."""
        return await ask(data)  # type: ignore[no-any-return]

    @post(
        "/v1/feedback/batch",
        status_code=200,
        opt={"scope": "feedback"},
        media_type=NDJSON,
        operation_class=BatchOperation,
        responses=documented(507) | examples.LINES,
    )
    async def feedback_batch(request: StrictRequest) -> Response[bytes]:
        """Send many ratings, one JSON document a line. Each line gets a status line, in order; one bad line does not hold up the others."""
        lines = read_lines(await request.body(), lambda line: read_as(line, messages.Feedback))
        events = [line for line in lines if isinstance(line, messages.Feedback)]
        accepted = await ask(messages.FeedbackBatch(events)) if events else messages.BatchAccepted([])
        return Response(answer_lines(lines, accepted), media_type=NDJSON)

    @post("/v1/items/upsert", status_code=200, opt={"scope": "admin"}, responses=documented(400, 422, 507) | examples.ITEM_ACCEPTED)
    async def upsert_item(data: Annotated[messages.UpsertItem, Body(examples=examples.ITEM)]) -> messages.ItemAccepted:
        """There is such an item."""
        return await ask(data)  # type: ignore[no-any-return]

    @post("/v1/items/retire", status_code=200, opt={"scope": "admin"}, responses=documented(400, 422, 507) | examples.ITEM_ACCEPTED)
    async def retire_item(data: Annotated[messages.RetireItem, Body(examples=examples.ITEM)]) -> messages.ItemAccepted:
        """Never show this item again; what was learned of it stays."""
        return await ask(data)  # type: ignore[no-any-return]

    @post("/v1/items/restore", status_code=200, opt={"scope": "admin"}, responses=documented(400, 422, 507) | examples.ITEM_ACCEPTED)
    async def restore_item(data: Annotated[messages.RestoreItem, Body(examples=examples.ITEM)]) -> messages.ItemAccepted:
        """A retired item may be shown again."""
        return await ask(data)  # type: ignore[no-any-return]

    @post("/v1/snapshot", status_code=200, opt={"scope": "admin"}, responses=documented(400, 422, 507) | examples.SNAPSHOT)
    async def snapshot(data: Annotated[messages.TakeSnapshot, Body(examples=examples.NOTHING)]) -> messages.SnapshotTaken:
        """Write the model beside the log now, so that the next start is quick. It is also done at the end and from time to time."""
        return await ask(data)  # type: ignore[no-any-return]

    @post("/v1/users/forget", status_code=200, opt={"scope": "admin"}, responses=documented(400, 404, 422, 507) | examples.FORGOTTEN)
    async def forget_user(data: Annotated[messages.ForgetUser, Body(examples=examples.USER)]) -> messages.Forgotten:
        """Erase a user and rebuild the model as if they had never come. This takes as long as a replay of the log."""
        return await ask(data)  # type: ignore[no-any-return]

    return [feedback, feedback_batch, upsert_item, retire_item, restore_item, snapshot, forget_user]


def _open(service: Service) -> list[Any]:
    """What needs no key: whether the process lives, and whether it can be asked."""

    @get("/healthz", responses=documented())
    async def healthz() -> Alive:
        """Whether the process lives."""
        readiness = service.engine.readiness
        if readiness.phase == "failed":
            raise StorageFailed(readiness.detail or "the engine failed")
        return Alive(True)

    @get("/readyz", responses=documented())
    async def readyz() -> messages.Readiness:
        """Whether questions are answered: not while the log is replayed, and not while the service ends."""
        readiness = service.engine.readiness
        if service.ending.is_set() or not readiness.ready:
            raise NotReady(
                f"{readiness.phase}: {readiness.done} of {readiness.total} events" + (f"; {readiness.detail}" if readiness.detail else "")
            )
        return readiness

    return [healthz, readyz]
