"""What is measured of a life."""
