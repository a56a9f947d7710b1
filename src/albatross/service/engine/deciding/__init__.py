"""Choosing items for a user, and explaining the choice."""
