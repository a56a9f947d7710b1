"""Errors that are the caller's to mend."""


class InvalidInput(ValueError):
    """What was given is not accepted. The message names what was given and what would be."""
