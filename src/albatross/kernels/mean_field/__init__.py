"""Mean-field factorization: beliefs about users and items, how they are learned, and what an item is worth to try."""
