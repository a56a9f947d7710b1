"""Online recommendation from nothing: bandits over matrix factorizations that learn from every rating, at once."""

import importlib
from typing import TYPE_CHECKING, Any

from albatross.core.agent import Agent, Choice
from albatross.core.extras import explain_missing
from albatross.core.foreign.plain import plain
from albatross.core.recording import Recording
from albatross.core.version import VERSION
from albatross.simulation.trial import simulate

if TYPE_CHECKING:
    from albatross.service.client import Client
    from albatross.service.recommender import Recommender

__all__ = ["Agent", "Choice", "Client", "Recommender", "Recording", "plain", "simulate"]
__version__ = VERSION

_LATER = {"Client": "albatross.service.client", "Recommender": "albatross.service.recommender"}
"""Imported only when used: research does not need the service."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        try:
            return getattr(importlib.import_module(_LATER[name]), name)
        except ImportError as error:
            sentence = explain_missing(error)
            if sentence is None:
                raise
            raise ImportError(f"{name}: {sentence}", name=error.name) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
