"""Finished trials as tables, documents and the numbers that figures show. Nothing here draws or prints."""
