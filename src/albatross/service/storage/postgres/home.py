"""A service whose log is in PostgreSQL. Snapshots are in a folder: losing them costs only time."""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import platformdirs

from albatross.core.errors import InvalidInput
from albatross.service.api.errors import NotWritten
from albatross.service.storage.folder import KEYS, make_folder, tidy
from albatross.service.storage.mark import Head
from albatross.service.storage.migration import reading_log
from albatross.service.storage.postgres.keyring import PostgresKeyring
from albatross.service.storage.postgres.lease import Lease
from albatross.service.storage.postgres.log import PostgresLog, copy_rows
from albatross.service.storage.postgres.log_reader import PostgresReader
from albatross.service.storage.postgres.session import beginning, connect, name_of, shards_of, understood
from albatross.service.storage.postgres.sharing import ShardLog
from albatross.service.storage.postgres.wire import Kept
from albatross.service.storage.remote import RemoteSnapshots
from albatross.service.storage.snapshots import manifests, remove_all
from albatross.service.storage.store import NO_CHAIN, DamagedLog, ReadableLog, Row, Written, chained


class PostgresHome:
    """One shard of a database, for one process at a time. With several shards, `shard` is required."""

    def __init__(self, address: str, snapshots: str | Path | None = None, shard: int | None = None) -> None:
        """`snapshots`: a folder, or a URL that fsspec supports; None for a folder in the user's cache."""
        self.address, self.shard = address, shard or 0
        self._name, self._said = name_of(address), shard is not None
        self._remote = remote_snapshots(snapshots)
        self.lease: Lease | None = None
        """Of the log that was opened last."""
        self.folder = _folder(self._name, self.shard) if snapshots is None or self._remote is not None else Path(snapshots)

    def __str__(self) -> str:
        return self._name

    @property
    def shards(self) -> int:
        """The number of shards; 0 before the first start."""
        with contextlib.closing(connect(self.address)) as session:
            return shards_of(session, self._name)

    @property
    def begun(self) -> bool:
        shards = self.shards
        if shards > 1 and not self._said:
            raise InvalidInput(f"{self._name} has {shards} shards; accepted here: one shard (albatross cluster start serves several)")
        return shards > 0

    def claim(self) -> None:
        make_folder(self.folder)

    def begin(self, rows: Sequence[Row]) -> None:
        written = chained(Head(0, NO_CHAIN), rows)
        handles = [(handle, line[0], content) for row, line in zip(rows, written, strict=True) for handle, content in row.handles]
        create(self.address, [written], [handles])

    def open(self, durable: bool) -> PostgresLog:
        kind = PostgresLog if self.shards == 1 else ShardLog
        log = kind(self.address, self.shard, durable)  # from here on, no other process writes, neither rows nor snapshots
        self.lease = log.lease
        try:
            tidy(self.folder)
            with contextlib.suppress(NotWritten):  # a start without them only takes longer
                self.bring_snapshots()
            self._check_snapshots(log.head)
        except BaseException:
            log.close()
            raise
        return log

    def bring_snapshots(self) -> None:
        if self._remote is not None:
            with _reaching(self._remote.url):
                self._remote.bring(self.folder)

    def keep_snapshot(self, path: Path) -> None:
        if self._remote is not None:
            with _reaching(self._remote.url):
                self._remote.keep(path)

    def remove_snapshots(self) -> None:
        if self._remote is not None:
            with _reaching(self._remote.url):
                self._remote.remove_all()
        remove_all(self.folder)

    def _check_snapshots(self, head: Head) -> None:
        """Refuse a log that ends before one of its snapshots: the server was restored, or a replica promoted, without the last events."""
        for path, manifest in manifests(self.folder)[0]:
            if manifest.seq > head.seq:
                raise DamagedLog(
                    f"{self._name} is damaged: the log ends at event {head.seq}, but events up to {manifest.seq} were acknowledged, "
                    f"as {path} says. Keep a copy; a backup may have them. To go on without them: "
                    + (f"albatross cluster accept-loss {self._name}" if self._said else f"albatross doctor {self._name} --accept-loss")
                )

    def release(self, refused: bool = False) -> None:
        """Nothing to do: the lease ended with the log."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[ReadableLog]:
        if not self.begun:
            raise InvalidInput(f"{self._name} has no log of albatross; accepted: one that albatross serve or Recommender made")
        with contextlib.closing(PostgresReader(self.address, self.shard)) as log:
            yield log

    @property
    def keyring(self) -> PostgresKeyring:
        return PostgresKeyring(self.address)

    def facts(self) -> list[str]:
        named = ("server_version", "fsync", "synchronous_commit", "synchronous_standby_names")
        with contextlib.closing(connect(self.address)) as session, understood(self._name):
            version, fsync, commit, standbys = (session.execute("SELECT current_setting(%s)", (name,)).fetchone() for name in named)
            owner = session.execute("SELECT owner, epoch, until > clock_timestamp() FROM albatross.shards WHERE shard = %s", (self.shard,))
            holder, epoch, held = owner.fetchone() or ("", 0, False)
        kept = "on one machine" if standbys == ("",) else f"also on {standbys and standbys[0]}"
        return [
            f"{self._name}: PostgreSQL {version and version[0]}, fsync {fsync and fsync[0]}, "
            f"synchronous_commit {commit and commit[0]}: a commit is kept {kept}",
            f"{self._name}: epoch {epoch}, {f'in use by {holder}' if held else 'in use by nobody'}",
        ]

    def take_over(self, folder: Path) -> Head:
        """Make the log from that of a folder, row by row the same, with its keys. Makes all or nothing."""
        with reading_log(folder) as log:
            document = (folder / KEYS).read_bytes() if (folder / KEYS).exists() else None
            return create(self.address, log.rows(), log.handles(), document)

    def erased(self) -> None:
        """Nothing to do: there are no copies here."""

    def keep_backup(self) -> tuple[Path, Head]:
        if self._said and self.shards > 1:
            raise NotWritten(f"the logs of {self.shards} shards are in {self._name}; accepted: PostgreSQL's own backups")
        raise NotWritten(f"the log is in {self._name}; accepted: albatross backup {self._name} FOLDER, or PostgreSQL's own backups")

    def accept_loss(self) -> tuple[Head | None, Head]:
        """Accept the log as it is as complete. Returns its head as recorded, and as it is now."""
        several = self.shards > 1  # then other logs and the catalogue know of the missing rows: the log must end where its head says
        with contextlib.closing(PostgresReader(self.address, self.shard, marked=several)) as log:
            for _ in log.read():  # the rest must be undamaged
                pass
            now = log.head
        if now.seq == 0:
            raise InvalidInput(f"{self._name}: nothing is left of the log; accepted: a log with at least its first event")
        lease = Lease(self.address, self.shard)
        try:
            with contextlib.closing(connect(self.address, writing=True)) as session, understood(self._name), session.transaction():
                before = session.execute("SELECT seq, chain FROM albatross.shards WHERE shard = %s FOR UPDATE", (self.shard,)).fetchone()
                session.execute(
                    "UPDATE albatross.shards SET seq = %s, chain = %s WHERE shard = %s AND epoch = %s", (*now, self.shard, lease.epoch)
                )
            self.remove_snapshots()  # some may contain lost events
        finally:
            lease.release()
        return None if before is None else Head(*before), now


def create(address: str, rows: Iterable[Sequence[Written]], handles: Iterable[Sequence[Kept]], keys: bytes | None = None) -> Head:
    """Make the tables and the log of one shard from rows of a log. Makes all or nothing."""
    head = Head(0, NO_CHAIN)
    with beginning(address, 1, keys) as session:
        for part in rows:
            copy_rows(session, 0, part, ())
            head = Head(part[-1][0], part[-1][3])
        for kept in handles:
            copy_rows(session, 0, (), kept)
        session.execute("INSERT INTO albatross.shards (shard, seq, chain) VALUES (0, %s, %s)", head)
    return head


def remote_snapshots(snapshots: str | Path | None) -> RemoteSnapshots | None:
    """The remote snapshots of a URL; None if it is not a URL."""
    if not isinstance(snapshots, str) or "://" not in snapshots:
        return None
    return RemoteSnapshots(snapshots)


def snapshots_of(snapshots: str | Path | None, shard: int) -> str | Path | None:
    """The place for the snapshots of one shard of several."""
    if snapshots is None:
        return None
    return f"{str(snapshots).rstrip('/')}/{shard}" if "://" in str(snapshots) else Path(snapshots) / str(shard)


@contextlib.contextmanager
def _reaching(url: str) -> Iterator[None]:
    """Errors of the remote place as ours: each kind of place has its own errors."""
    try:
        yield
    except Exception as error:
        raise NotWritten(f"snapshots at {url} are out of reach: {error}") from error


def _folder(name: str, shard: int) -> Path:
    """The default folder for the snapshots of a database on this machine."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return platformdirs.user_cache_path("albatross") / "postgres" / f"{digest}-{shard}"
