"""Compiled functions on arrays and numbers. The only folder that imports Numba."""
