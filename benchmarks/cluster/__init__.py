"""A cluster: against one engine, part by part, and a model of it."""
