"""How an item is chosen for a user, and why."""
