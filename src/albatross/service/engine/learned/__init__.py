"""All that follows from the log, and how a snapshot holds it."""
