"""Metrics of a trial."""
