"""HTTP on the wire: clients, what they send, and how long and how much they may keep us busy."""
