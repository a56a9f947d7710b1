"""Commands for a folder of the service."""
