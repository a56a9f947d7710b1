"""Tools for a whole folder: verify, back up, import, export, change the policy."""
