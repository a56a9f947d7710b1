"""`PYTHONPATH=src:tests python -m golden` records every case anew."""

from golden.cases import write

write()
