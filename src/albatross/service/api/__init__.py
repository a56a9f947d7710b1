"""What can be asked of the service, what it answers, and what it refuses. The same for Python, HTTP and its client."""
