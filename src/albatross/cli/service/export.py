"""`albatross export`: the events of a folder, for other programs."""

from pathlib import Path

from albatross.cli.service.folder import opened_log, watched
from albatross.service.tools.exporting import export_events


def export(folder: str, to: Path) -> None:
    """Write every event of a folder to a .jsonl or .parquet file, in their order.

    Parameters
    ----------
    folder
        A folder of the service, running or not, or an address postgresql://…
    to
        The file to write: .jsonl, one object per event, or .parquet, one row per event.
    """
    with opened_log(folder) as (log, _), watched(log.head.seq) as progress:
        count = export_events(log, to, progress)
    print(f"{to}: {count:,} events")
