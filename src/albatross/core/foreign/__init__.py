"""Policies from outside this package, compiled or in plain Python."""
