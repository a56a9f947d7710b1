"""How machine code is built and found again: sources, optimization, arguments by address, and errors in plain words."""
