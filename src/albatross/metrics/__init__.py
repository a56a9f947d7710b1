"""What is measured in a trial."""
