"""Regressions and factorizations that are fitted to ratings at hand."""
