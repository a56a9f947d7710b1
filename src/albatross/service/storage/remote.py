"""Snapshots at a URL, for shards that may start on any machine: written to a folder first, as always, then copied there.

They only save time: if they are lost, or out of reach, a start replays more.
"""

from pathlib import Path

from albatross.core.errors import InvalidInput
from albatross.core.files import whole_file
from albatross.service.storage.folder import SNAPSHOTS, make_folder
from albatross.service.storage.snapshots import KEEP


class RemoteSnapshots:
    """A folder at a URL that fsspec supports. Only the owner of the shard writes there."""

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs  # an extra, needed only here

        try:
            self._files, self._root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise InvalidInput(f"snapshots cannot be at {url} ({error}); accepted: a folder, or a URL that fsspec knows here") from None
        self.url = url

    def bring(self, folder: Path) -> None:
        """Copy snapshots that a folder does not have into it. A manifest comes last, as when it is written."""
        make_folder(folder / SNAPSHOTS)
        for name in self._manifests()[-KEEP:]:
            target = folder / SNAPSHOTS / name
            if not target.exists():
                for path in (target.with_suffix(".npz"), target):
                    with whole_file(path, 0o600) as partial:
                        self._files.get_file(f"{self._root}/{path.name}", str(partial))

    def keep(self, path: Path) -> None:
        """Copy a snapshot there, named by the path of its arrays, and remove all but the newest."""
        self._files.makedirs(self._root, exist_ok=True)
        for part in (path, path.with_suffix(".json")):
            self._files.put_file(str(part), f"{self._root}/{part.name}")
        self._remove(self._manifests()[:-KEEP])

    def remove_all(self) -> None:
        self._remove(self._manifests())
        self._files.invalidate_cache()
        for path in self._files.glob(f"{self._root}/*.npz"):  # incomplete copies
            self._files.rm_file(path)

    def _remove(self, names: list[str]) -> None:
        for name in names:
            self._files.rm_file(f"{self._root}/{name}")
            self._files.rm_file(f"{self._root}/{Path(name).with_suffix('.npz')}")

    def _manifests(self) -> list[str]:
        """Names of manifests, the newest last."""
        self._files.invalidate_cache()
        return sorted(path.rpartition("/")[2] for path in self._files.glob(f"{self._root}/*.json"))
