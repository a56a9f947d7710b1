"""What is on disk: events, the log, the mark of its head, snapshots."""
