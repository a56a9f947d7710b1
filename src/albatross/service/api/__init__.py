"""Requests, answers and errors of the service. They are the same in Python, over HTTP and in its client."""
