"""The log in a file of SQLite: writing, reading, and copies while it is served."""
