"""Online recommendation from nothing: bandits over matrix factorizations that learn from every rating, at once."""

from albatross.core.agent import Agent, Choice
from albatross.core.recording import Recording
from albatross.simulation.trial import simulate

__all__ = ["Agent", "Choice", "Recording", "simulate"]
__version__ = "0.1.0"
