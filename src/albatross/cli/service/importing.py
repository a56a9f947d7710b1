"""`albatross import`: past ratings."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from albatross.cli.arguments import parse_policy
from albatross.cli.progress import progress_bar
from albatross.cli.service.folder import opened_engine
from albatross.cli.service.settings import folder_of
from albatross.core.errors import InvalidInput
from albatross.datasets.tabular import column_names, read_rows
from albatross.service.settings.force import options_of, settle
from albatross.service.settings.kinds import parse_scale
from albatross.service.tools.importing import check_ratings, import_rows

MOST_COMPLAINTS = 20
"""At most so many bad rows are shown."""


def import_ratings(
    folder: str,
    file: Path,
    *,
    scale: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    policy: str | None = None,
    setting: Annotated[list[str] | None, Parameter(name="--set", negative=())] = None,
    accept_changed_policy: Annotated[bool, Parameter(negative=())] = False,
    user_column: str = "user",
    item_column: str = "item",
    rating_column: str = "rating",
    source: str | None = None,
) -> None:
    """Import past ratings into a folder, in the order of the file. After an interruption, run the same command again.

    A row is identified by its source and content: of an edited file, only the new rows are applied.
    Rows that cannot be accepted are printed with their line, and the others are imported; the exit code then is 2.

    Example: albatross import shop.albatross ratings.csv --scale 1..5

    Parameters
    ----------
    folder
        A folder of the service or an address postgresql://…, which must not be running. It is made if it does not exist.
    file
        A .csv, .tsv or .parquet file with a header.
    scale
        Lowest and highest rating, as 1..5. Needed for a new folder.
    policy
        Name of a policy (see: albatross list), file.py:Class or module:Class; for a new folder, mean-field if not given.
    setting
        Parameter of the policy, as key=value; may be given several times.
    accept_changed_policy
        If the source of your own policy has changed: rebuild the model from the whole log with the new source.
    user_column
        The column that names the user.
    item_column
        The column that names the item.
    rating_column
        The column that holds the rating.
    source
        The name that identifies the rows; if not given, the name of the file. The same row of another source is another rating.
    """
    columns = (user_column, item_column, rating_column)
    check_ratings(str(file), column_names(file))
    total = sum(1 for _ in read_rows(file, *columns))
    given = {
        "policy": None if policy is None else parse_policy(policy),
        "scale": None if scale is None else parse_scale(scale),
        "accept_changed_policy": accept_changed_policy or None,
    }
    options = options_of(settle(folder_of(folder), given), snapshot_every=0, silence=None, retention=None)
    with opened_engine(folder, options) as engine, progress_bar(total, "rows") as progress:
        result = import_rows(engine, read_rows(file, *columns), file.name if source is None else source, progress)
    for line, reason in result.refused[:MOST_COMPLAINTS]:
        print(f"albatross: {file}, line {line}: {reason}", file=sys.stderr)
    print(f"{folder}: {result.applied:,} ratings are new, {result.known:,} were there already, {len(result.refused):,} rows were refused")
    if result.refused:
        raise InvalidInput(f"{file}: {len(result.refused):,} of {total:,} rows were refused; the others are in {folder}")
