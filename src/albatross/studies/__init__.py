"""Many trials, and what they say together."""
