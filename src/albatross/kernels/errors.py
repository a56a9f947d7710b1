"""Errors that the caller can fix."""


class InvalidInput(ValueError):
    """The input is not accepted. The message names what was given and what is accepted."""
