"""One policy, one public, one seed: the loop."""
