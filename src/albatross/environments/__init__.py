"""Simulated publics: synthetic worlds, and logged ratings as a world."""
