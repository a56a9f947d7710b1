"""Particle Thompson sampling: many factorizations that share memory."""
