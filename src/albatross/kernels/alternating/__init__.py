"""Alternating Linear Bandits: the steps of one visit, on one machine and on several shards."""
