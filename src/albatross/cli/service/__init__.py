"""Commands for a folder of the service, or a cluster."""
