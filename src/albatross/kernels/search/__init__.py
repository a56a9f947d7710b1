"""Scores of many items, and search for the best in a large catalogue without scoring all of it."""
