"""The log in PostgreSQL: every append is conditional on a lease, so that there are never two who write."""
