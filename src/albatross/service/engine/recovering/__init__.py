"""From a log to a model, and checks that both agree."""
