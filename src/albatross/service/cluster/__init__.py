"""A service of several processes: fronts that speak HTTP, and shards that learn. PostgreSQL keeps the truth, Ray keeps them running."""
