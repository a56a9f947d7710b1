"""Speed, as ratios of two things measured in turns in one run: `make bench`, or `python -m benchmarks [NAME …]`."""

import os

# One core for all: threads of NumPy's linear algebra would busy-wait, and count as its time.
for library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
