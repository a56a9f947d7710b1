"""The log in PostgreSQL: every append is conditional on a lease, so that there is never more than one writer."""
