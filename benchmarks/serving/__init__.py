"""One service: requests over HTTP, their stages, and starts."""
