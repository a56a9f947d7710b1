"""A service of several processes: fronts that speak HTTP, and shards that learn. PostgreSQL stores the data, Ray restarts processes."""
