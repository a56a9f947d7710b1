"""Recordings in, figures out."""
