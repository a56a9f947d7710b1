"""What goes between a front and a shard: where a shard listens, what is sent, and what becomes of requests when a connection breaks."""
