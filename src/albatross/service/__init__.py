"""An agent in service: everything is in the log before it is said."""
