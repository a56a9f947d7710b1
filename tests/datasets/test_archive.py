"""Archives are found, downloaded after agreement, noted where they differ, and refused where they are damaged."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from albatross import datasets
from albatross.core.errors import InvalidInput
from albatross.datasets import archive
from albatross.datasets.archive import Archive

Zipped = Callable[..., Path]

ARCHIVE = Archive("http://127.0.0.1:9/tiny.zip", ("tiny.zip", "tiny_partial.zip"), checksum=None, terms="Be kind.")


def packed(content: str = "content") -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(zipfile.ZipInfo("folder/tiny.dat"), content, zipfile.ZIP_DEFLATED)  # no time of day: the same bytes every time
    return target.getvalue()


class Server(ThreadingHTTPServer):
    """Serves files by path on this machine, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []

    def offer(self, content: bytes, checksum: str | None = None) -> Archive:
        self.files["/tiny.zip"] = content
        return replace(ARCHIVE, address=f"http://127.0.0.1:{self.server_port}/tiny.zip", checksum=checksum)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name is the base class's
        pass


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cache(folder: Path) -> Path:
    path = archive.cache_folder()
    assert folder.parent in path.parents
    return path


def test_a_file_is_found_under_any_accepted_name_the_official_one_first(folder: Path) -> None:
    assert archive.find(ARCHIVE) is None
    (folder / "tiny_partial.zip").write_bytes(b"")
    assert archive.find(ARCHIVE) == folder / "tiny_partial.zip"
    (folder / "tiny.zip").write_bytes(b"")
    assert archive.find(ARCHIVE) == folder / "tiny.zip"


def test_the_named_folder_goes_before_the_cache(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True)
    (cache / "tiny.zip").write_bytes(b"")
    assert archive.find(ARCHIVE) == cache / "tiny.zip"
    (folder / "tiny_partial.zip").write_bytes(b"")
    assert archive.find(ARCHIVE) == folder / "tiny_partial.zip"
    monkeypatch.delenv("ALBATROSS_DATA")
    assert archive.find(ARCHIVE) == cache / "tiny.zip"


def test_a_named_folder_that_does_not_exist_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALBATROSS_DATA", str(folder / "nowhere"))
    with pytest.raises(InvalidInput, match=r"ALBATROSS_DATA is .*nowhere"):
        archive.find(ARCHIVE)


@pytest.mark.parametrize("method", ["md5", "sha256"])
def test_a_file_that_differs_from_the_official_one_is_used_with_a_note(folder: Path, method: str) -> None:
    official = replace(ARCHIVE, checksum=f"{method}:{hashlib.new(method, packed()).hexdigest()}")
    told: list[str] = []
    path = folder / "tiny.zip"
    path.write_bytes(packed())
    assert archive.fetch(official, tell=told.append) == path
    assert told == []
    path.write_bytes(packed("packed anew"))
    assert archive.fetch(official, tell=told.append) == path
    assert len(told) == 1
    assert str(path) in told[0]


def damage(kind: str) -> bytes:
    whole = packed("0123456789" * 50)
    name = b"folder/tiny.dat"
    start = whole.index(name) + len(name)
    return {
        "not a zip": b"<html>Please sign in</html>",
        "empty": b"",
        "cut off": whole[: len(whole) // 2],
        "a flipped bit in the data": whole[:start] + bytes([whole[start] ^ 8]) + whole[start + 1 :],
        "a wrong checksum": whole.replace(whole[14:18], b"\0\0\0\0"),
    }[kind]


@pytest.mark.parametrize("kind", ["not a zip", "empty", "cut off", "a flipped bit in the data", "a wrong checksum"])
def test_a_damaged_file_is_refused_by_name(folder: Path, kind: str) -> None:
    path = folder / "tiny.zip"
    path.write_bytes(damage(kind))
    with pytest.raises(InvalidInput, match=r"tiny\.zip is damaged"):
        archive.verify(path)
    with pytest.raises(InvalidInput, match=r"tiny\.zip is damaged"):
        archive.member(path, "tiny.dat")


def test_a_member_is_found_in_any_folder_of_the_archive(zipped: Zipped) -> None:
    path = zipped("tiny.zip", {"other/not_tiny.dat": "wrong", "folder/tiny.dat": "right"})
    archive.verify(path)
    assert archive.member(path, "tiny.dat") == b"right"
    with pytest.raises(InvalidInput, match=r"tiny\.zip does not contain big\.dat"):
        archive.member(path, "big.dat")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [("7", "Line: 2"), ("7::8::9", "Line: 2"), ("seven::8", "Line: 2"), ("7::", "no second in line 2"), ("7", "Found: 1")],
)
def test_a_row_that_cannot_be_parsed_is_refused_with_its_line(zipped: Zipped, line: str, complaint: str) -> None:
    path = zipped("tiny.zip", {"tiny.dat": f"1::2\n{line}\n3::4\n"})
    with pytest.raises(InvalidInput, match=complaint) as caught:
        archive.columns(path, "tiny.dat", {"first": "INTEGER", "second": "INTEGER"}, separator="::")
    assert f"{path}: tiny.dat is damaged" in str(caught.value)


def test_a_download_lands_in_the_cache_and_happens_once(server: Server, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    offered = server.offer(packed(), checksum=f"md5:{hashlib.md5(packed()).hexdigest()}")
    told: list[str] = []
    path = archive.fetch(offered, accept=True, tell=told.append)
    assert path == cache / "tiny.zip"
    assert path.read_bytes() == packed()
    assert "tiny.zip" in capsys.readouterr().err
    assert any("Be kind." in note for note in told)
    assert any(offered.address in note for note in told)
    assert archive.fetch(offered, tell=told.append) == path
    assert server.requests == ["/tiny.zip"]


@pytest.mark.parametrize(
    ("content", "checksum"),
    [(packed("tampered"), "md5:00000000000000000000000000000000"), (b"<html>Please sign in</html>", None), (packed()[:-9], None)],
    ids=["another checksum", "a page instead", "cut off"],
)
def test_a_bad_download_is_refused_and_not_kept(server: Server, cache: Path, content: bytes, checksum: str | None) -> None:
    offered = server.offer(content, checksum)
    with pytest.raises(InvalidInput, match=r"tiny\.zip could not be downloaded") as caught:
        archive.fetch(offered, accept=True)
    assert offered.address in str(caught.value)
    assert not list(cache.glob("*.zip*"))
    assert archive.find(offered) is None


def test_without_a_network_the_message_says_what_to_get_and_where_to_put_it(server: Server, folder: Path) -> None:
    absent = replace(server.offer(packed()), address=f"http://127.0.0.1:{server.server_port}/elsewhere.zip")
    unreachable = ARCHIVE  # nothing listens on port 9
    for wanted in (absent, unreachable):
        with pytest.raises(InvalidInput, match="could not be downloaded") as caught:
            archive.fetch(wanted, accept=True)
        assert f"get {wanted.address} by other means and put it into {folder}" in str(caught.value)


@pytest.mark.parametrize("accept", [None, False])
def test_nothing_is_downloaded_without_agreement(server: Server, accept: bool | None) -> None:
    offered = server.offer(packed())
    with pytest.raises(InvalidInput, match=r"tiny\.zip is not here.*Be kind\.") as caught:
        archive.fetch(offered, accept)
    assert offered.address in str(caught.value)
    assert server.requests == []


def test_agreement_is_remembered_for_these_terms_and_no_others(server: Server, cache: Path) -> None:
    offered = server.offer(packed())
    archive.fetch(offered, accept=True)
    (cache / "tiny.zip").unlink()
    told: list[str] = []
    archive.fetch(offered, tell=told.append)
    assert not any("Be kind." in note for note in told)
    (cache / "tiny.zip").unlink()
    for terms, accept in (("Be very kind.", None), ("Be kind.", False)):
        with pytest.raises(InvalidInput, match="terms of use"):
            archive.fetch(replace(offered, terms=terms), accept)
    assert len(server.requests) == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "agrees"), [("y\n", True), ("Yes\n", True), ("\n", False), ("no\n", False), ("", False)])
def test_a_person_at_a_terminal_is_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, agrees: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    offered = server.offer(packed())
    if agrees:
        assert archive.fetch(offered).is_file()
    else:
        with pytest.raises(InvalidInput, match="terms of use"):
            archive.fetch(offered)
    assert "Be kind." in capsys.readouterr().err
    assert server.requests == (["/tiny.zip"] if agrees else [])


def test_a_cache_that_cannot_be_written_to_is_named(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("ALBATROSS_CACHE", str(folder / "file"))
    with pytest.raises(InvalidInput, match="ALBATROSS_CACHE"):
        archive.fetch(server.offer(packed()), accept=True)


def test_every_file_of_the_folder_is_a_data_set_that_says_where_it_comes_from() -> None:
    assert datasets.names() == [
        "book-crossing",
        "jester-1",
        "jester-2",
        *(f"movielens-{size}" for size in ("100k", "10m", "1m", "25m", "32m")),
    ]
    for name in datasets.names():
        dataset = datasets.create(name)
        assert dataset.dataset_name() == name
        assert dataset.home.startswith("http")
        assert dataset.terms
        assert dataset.citation
        assert dataset.scale[0] < dataset.scale[1]
        assert all(needed.address.endswith(f"/{needed.name}") for needed in dataset.archives)


def test_unknown_names_and_parameters_are_refused() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'jester-2'"):
        datasets.create("jester2")
    with pytest.raises(InvalidInput, match="min_ratings"):
        datasets.create("jester-2", {"min_rating": 3})
    with pytest.raises(InvalidInput, match="at least 1"):
        datasets.create("jester-2", {"n_users": 0})


def test_the_list_shows_what_is_here_and_says_what_is_not(zipped: Zipped, folder: Path) -> None:
    here = zipped("ml-100k.zip", {"ml-100k/u.data": "1\t2\t3\t4\n1\t3\t5\t4\n2\t2\t1\t4\n"})
    broken = zipped("ml-1m.zip", {"ml-1m/ratings.dat": "1::2\n"})
    entries = {entry.dataset.dataset_name(): entry for entry in datasets.listing()}
    assert list(entries) == datasets.names()
    assert entries["movielens-100k"].summary == (2, 2, 3, 0.75, (1, 5))
    assert entries["movielens-100k"].paths == (here,)
    assert "not the official" in entries["movielens-100k"].remarks[0]
    assert entries["movielens-1m"].summary is None
    assert any("is damaged" in remark and str(broken) in remark for remark in entries["movielens-1m"].remarks)
    assert entries["jester-2"] == (datasets.create("jester-2"), (), None, ("jester_dataset_2.zip is not here",))


def test_fetching_a_data_set_reads_all_of_its_archive(zipped: Zipped) -> None:
    path = zipped("ml-100k.zip", {"ml-100k/README": "read me" * 9, "ml-100k/u.data": "1\t2\t3\t4\n"})
    dataset = datasets.create("movielens-100k")
    assert dataset.fetch() == [path]
    whole = path.read_bytes()
    path.write_bytes(whole.replace(whole[14:18], b"\0\0\0\0"))
    assert dataset.load().ratings.tolist() == [3.0]
    with pytest.raises(InvalidInput, match=r"ml-100k\.zip is damaged"):
        dataset.fetch()
