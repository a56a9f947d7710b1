"""Everything that follows from the log, and its snapshots."""
