"""Particle Thompson sampling: many factorizations that share what they have in common."""
