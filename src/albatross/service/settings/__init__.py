"""Every setting of a service: one table for the command line, the configuration file and Python."""
