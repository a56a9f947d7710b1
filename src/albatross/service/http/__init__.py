"""The engine over HTTP: one application over one table of routes, and the process around it."""
