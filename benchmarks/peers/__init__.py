"""Other libraries on the same ratings: `make peers`, or `python -m benchmarks.peers`. Nothing here is a dependency of anything."""
