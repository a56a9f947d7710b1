"""One thread that owns a model and its log: every event is written, then applied to the model."""
