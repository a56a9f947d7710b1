"""What is done with a whole folder: verify, back up, import, export, change the policy."""
