"""Other libraries on the same ratings: `make peers`, or `python -m benchmarks.peers`. Nothing depends on this."""
