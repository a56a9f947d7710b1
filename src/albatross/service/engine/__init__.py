"""One thread that owns a model and its log: every event is written, then folded."""
