"""Many trials, and statistics over them."""
