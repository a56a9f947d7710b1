"""From a log to a model, and whether the two agree."""
