"""Speed, as ratios of two things measured in turns in one run: `make bench`, or `python -m benchmarks [NAME …]`."""

import os

# One core for everybody: threads of the linear algebra behind NumPy would wait busily, and count as its time.
for library in ("OPENBLAS", "MKL", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
