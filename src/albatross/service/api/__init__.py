"""What can be asked of the service, what it answers, and what it refuses. The same for Python, HTTP and its client."""

import atexit
import gc

# The last collection of an ending interpreter crashes now and then in msgspec's recursive types. Nobody needs what it would collect.
atexit.register(gc.freeze)
