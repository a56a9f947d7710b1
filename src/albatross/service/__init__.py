"""An agent in service: every event is written to the log before it is answered."""
