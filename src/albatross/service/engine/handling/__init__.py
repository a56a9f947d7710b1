"""One handler per type of request: it checks the request against the group, adds events to it, and returns how it will be answered."""
