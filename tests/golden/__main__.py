"""`PYTHONPATH=src:tests python -m golden` records every case again."""

from golden.cases import write

write()
