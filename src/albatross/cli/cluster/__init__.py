"""Commands for a cluster."""
