"""Messages for a terminal: news on standard output, warnings and the progress bar on standard error."""

import sys

from albatross.cli.progress import progress_bar
from albatross.studies.observer import Observer


def _tell(sentence: str) -> None:
    print(sentence, flush=True)


def _warn(sentence: str) -> None:
    print(f"albatross: {sentence}", file=sys.stderr)


TERMINAL = Observer(_tell, _warn, progress_bar)
