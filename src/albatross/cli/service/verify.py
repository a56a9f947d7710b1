"""`albatross verify`: the model rebuilt from the log alone, bit for bit."""

from pathlib import Path

from albatross.cli.service.folder import meet, watched
from albatross.core.errors import InvalidInput
from albatross.service.engine.recovering.verifying import redecide
from albatross.service.engine.recovering.verifying import verify as verify_log
from albatross.service.storage.home import Home, home_of
from albatross.service.storage.reading import lacking, read_genesis


def verify(folder: str, *, decisions: bool = False, policy: str | None = None, snapshots: Path | None = None) -> None:
    """Rebuild the model from the log alone, and compare it with every snapshot. All events, ids, the hash chain and the mark are checked.

    Parameters
    ----------
    folder
        A folder of the service or an address postgresql://…, running or not. Events that arrive during the command are not included.
    decisions
        Also repeat every decision, and compare.
    policy
        The new place of your own policy, as file.py:Class, if it was moved.
    snapshots
        With a PostgreSQL address: the folder for snapshots, if it was served with one.
    """
    meet(policy)
    verify_home(home_of(folder, snapshots), decisions)


def verify_home(home: Home, decisions: bool) -> None:
    """Print the result. Raises an error if something is wrong."""
    home.bring_snapshots()
    with home.reading() as log:
        genesis = read_genesis(log, str(home))
        with watched(log.head.seq) as progress:
            verdict = verify_log(log, home.folder, genesis, progress)
        print(f"{verdict.seq:,} events, {verdict.ratings:,} ratings, {verdict.decisions:,} decisions: every row, id and link is sound")
        if log.restored:
            print(lacking(log))
        if verdict.base:
            print(f"exchanges up to version {verdict.base:,} were merged: the log was replayed with their base")
        print(f"chain    {verdict.chain}")
        print(f"state id {verdict.state_id}")
        for complaint in verdict.skipped:
            print(f"skipped: {complaint}")
        for seq in verdict.confirmed:
            print(f"the snapshot at event {seq:,} has the state that the log gives, bit for bit")
        if verdict.contradicted:
            raise InvalidInput(f"{home}: the snapshot at event {verdict.contradicted[0]} does not have the state that the log gives")
        if decisions:
            with watched(log.head.seq) as progress:
                again = redecide(log, genesis, progress)
            print(f"{again.same:,} decisions come out the same; {again.unknowable:,} are from before a change and cannot be made again")
            if again.different:
                raise InvalidInput(f"{home}: decision {again.different[0]} and {len(again.different) - 1} more come out differently")
