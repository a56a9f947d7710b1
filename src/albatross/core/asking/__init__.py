"""What else an agent can be asked: many choices at once, beliefs, and accounts of a choice."""
