"""Scores of many items, and the best of a large catalogue without looking at all of it."""
