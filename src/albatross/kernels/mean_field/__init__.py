"""Mean-field factorization: beliefs about users and items, learning, and the value of trying an item."""
