"""Users divided over shards: what one shard sends to the others, and what it receives."""
