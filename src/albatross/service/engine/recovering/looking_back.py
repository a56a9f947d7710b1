"""Applies the log to a model beside the serving engine: the model as it was at some event, and a check that log and snapshots agree."""

import time
from pathlib import Path

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import NotFound
from albatross.service.api.requests import LookBack
from albatross.service.api.values import MOST_SHOWN, check_count, check_id
from albatross.service.api.views import PastView, VerifyReport
from albatross.service.engine.deciding.choosing import view_user
from albatross.service.engine.learned import snapshots
from albatross.service.engine.learned.model import Model
from albatross.service.engine.recovering.recovery import apply_log, begun
from albatross.service.engine.recovering.verifying import verify
from albatross.service.storage.events import Genesis, decode
from albatross.service.storage.home import Home
from albatross.service.storage.snapshots import manifests
from albatross.service.storage.store import DamagedLog, ReadableLog


def look_back(home: Home, genesis: Genesis, request: LookBack, past: Model | None) -> tuple[Model, PastView]:
    """The model as it was at an event. It starts from `past` or from a snapshot, if these are not later."""
    check_count("seq", request.seq, 1, 2**53 - 1)
    check_count("n", request.n, 0, MOST_SHOWN)
    if request.user is not None:
        check_id("user", request.user)
    if request.shard not in (None, genesis.shard):
        raise NotFound(f"shard is {request.shard}; accepted: none, or {genesis.shard}, which is the only one here")
    with home.reading() as log:
        seq = min(request.seq, log.head.seq)
        model = past if past is not None and past.seq <= seq else _begin(home.folder, log, genesis, seq)
        apply_log(log, model, until=seq)
        body = log.body(seq)
    view = None
    user = None if request.user is None else model.visitors.known_as(request.user)
    if user is not None and user in model.users:
        view = view_user(model, user, request.n)
    at = None if body is None else decode(body).at
    sizes = (model.n_users, len(model.items), model.ratings, model.decisions)
    return model, PastView(model.seq, at, *sizes, model.state_id, model.series.series(), view)


def _begin(folder: Path, log: ReadableLog, genesis: Genesis, seq: int) -> Model:
    """The newest valid snapshot up to an event, or an empty model."""
    for path, manifest in manifests(folder)[0]:
        chain = log.chain_at(manifest.seq) if manifest.seq <= seq else None
        if chain is not None and chain.hex() == manifest.chain:
            try:
                model = snapshots.load(path, manifest, genesis)
            except InvalidInput:
                continue
            if model.base == log.base_version():
                return model
    return begun(log, genesis)


def report(home: Home, genesis: Genesis) -> VerifyReport:
    """The findings of `albatross verify`. A damaged log is a finding, not an error."""
    began = time.monotonic()
    try:
        with home.reading() as log:
            found = verify(log, home.folder, genesis)
    except DamagedLog as damage:
        return VerifyReport(False, 0, "", "", 0, 0, [], [], 0, time.monotonic() - began, str(damage))
    detail = f"the snapshot at event {found.contradicted[0]} is not what the log gives" if found.contradicted else None
    return VerifyReport(
        passed=not found.contradicted,
        seq=found.seq,
        chain=found.chain,
        state_id=found.state_id,
        ratings=found.ratings,
        decisions=found.decisions,
        confirmed=found.confirmed,
        contradicted=found.contradicted,
        skipped=len(found.skipped),
        seconds=time.monotonic() - began,
        detail=detail,
    )
