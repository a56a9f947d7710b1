"""Where ratings come from."""
