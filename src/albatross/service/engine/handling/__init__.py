"""What the engine does with each type of request: checks it against the group, puts events into it, and says how it will answer."""
