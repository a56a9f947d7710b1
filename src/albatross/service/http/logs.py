"""The log of the serving process. It says what happened, never what was sent.

No line may hold a header, a body, an id or a key. The message of an error may quote any of these, and so may a traceback with locals.
So only the type and the frames of an error are logged, for errors of this package and of libraries.
"""

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import structlog

MOST_FRAMES = 20
LIBRARIES = ("asyncio", "uvloop", "concurrent.futures")
"""Libraries whose warnings go into the log too."""

log = structlog.get_logger()


def frames_of(error: BaseException) -> list[str]:
    """Where an error came from, innermost last: file, line and function, without values."""
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    return [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames]


def configure_log(form: str, stream: TextIO) -> None:
    """One line per event, as JSON or for people."""
    renderer: Any
    if form == "json":
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_tracebacks,
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )


@contextmanager
def everything_logged(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Within this context, errors and warnings that Python and its libraries would print go into the log, without their message."""
    handler = _Forward(level=logging.WARNING)
    loggers = [(logger, logger.handlers, logger.propagate) for logger in map(logging.getLogger, LIBRARIES)]
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    for logger, _, _ in loggers:
        logger.handlers, logger.propagate = [handler], False
    sys.excepthook = _on_exception
    threading.excepthook = lambda arguments: unforeseen(arguments.exc_value)
    sys.unraisablehook = lambda arguments: unforeseen(arguments.exc_value)
    loop.set_exception_handler(lambda _, context: unforeseen(context.get("exception")))
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        for logger, handlers, propagate in loggers:
            logger.handlers, logger.propagate = handlers, propagate


class _Forward(logging.Handler):
    """Forwards warnings of libraries to the log: place and type, without the message."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        place = f"{Path(record.pathname).name}:{record.lineno} in {record.funcName}"
        log.log(record.levelno, "a library complains", library=record.name, place=place, **_described(error))


def unforeseen(error: BaseException | None) -> None:
    """Log an error that should not have happened."""
    log.error("unforeseen error", **_described(error))


def _on_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    unforeseen(error.with_traceback(trace))


def _described(error: BaseException | None) -> dict[str, Any]:
    return {} if error is None else {"error": type(error).__name__, "frames": frames_of(error)}


def _without_tracebacks(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace the traceback of a logged error by its type and frames."""
    given = event.pop("exc_info", None)
    for name in ("exception", "stack", "stack_info"):
        event.pop(name, None)
    error = given if isinstance(given, BaseException) else sys.exc_info()[1] if given else None
    event.update(_described(error))
    return event
