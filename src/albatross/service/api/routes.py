"""The table of routes. The service, the OpenAPI description and the tests are all made from it.

A new verb is a request type, a handler in the engine, and a route: of a shop, or of a keeper.
"""

from typing import Any

import msgspec

from albatross.service.api.keeper_routes import KEEPER_ROUTES
from albatross.service.api.requests import Request
from albatross.service.api.route import BATCH, ITEM_BATCH, Route
from albatross.service.api.shop_routes import SHOP_ROUTES

ROUTES: tuple[Route, ...] = (*SHOP_ROUTES, *KEEPER_ROUTES)

BY_PATH: dict[str, Route] = {route.path: route for route in ROUTES}
BY_REQUEST: dict[type[Request[Any]], Route] = {
    kind: route
    for route in ROUTES
    for kind in (route.reads, None if route.asks is None else type(route.asks))
    if kind is not None and route.path not in (BATCH, ITEM_BATCH)
}
"""The route of each request, for a client."""


def example_of(route: Route) -> Any:
    return None if route.answered is None else msgspec.to_builtins(route.answered)
