"""Regressions and factorizations fitted to ratings."""
