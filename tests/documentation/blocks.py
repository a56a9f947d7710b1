"""The code blocks of README and of the site, run in the order of the page: what a reader would do, in an empty folder."""

import contextlib
import doctest
import io
import json
import os
import re
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from albatross import datasets
from albatross.cli import main
from albatross.datasets import archive

from documentation.instead import INSTEAD

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = ("python", "sh", "toml", "json", "javascript", "text")
"""What a block may be. Text is what a program prints, or a picture in letters: it is not run."""

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"(?:#|//) (\w+\.\w+)\n")
NODE = shutil.which("node")
OPERATORS = re.compile(r"[&|><;$`]|\b(?:for|kill|wait|printf|curl)\b")
PORT = "8000"
PATIENCE = ("--retry 120 ", "--retry 3000 ")
"""A first start compiles, which on a machine that does much else takes longer than on a reader's."""
ENDING = "trap 'started=$(jobs -p); [ -z \"$started\" ] || kill $started' EXIT"
"""The shell ends everything it started, however it ends; otherwise its end would not be noticed."""


class Block(NamedTuple):
    line: int
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(text.count("\n", 0, found.start()) + 1, found[1], found[2]) for found in FENCED.finditer(text)]


def commands(text: str) -> list[str]:
    """The lines of a shell block, with those that end in a backslash joined to the next, and without comments."""
    lines = re.sub(r"\s*\\\n\s*", " ", text).splitlines()
    return [line for line in (re.sub(r"\s+# .*", "", line) for line in lines) if line.strip() and not line.startswith("#")]


class Reader:
    """Runs everything on a page. One shell and one Python last for the whole page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page"}
        self.printed = ""
        self.modules: list[str] = []
        self._shell: subprocess.Popen[str] | None = None
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = str(probe.getsockname()[1])
        shutil.copytree(ROOT / "studies", folder / "studies")
        (folder / "docs" / "images").mkdir(parents=True)
        shutil.copy(ROOT / "docs" / "skeleton.py", folder / "docs")

    def read(self, page: Path) -> None:
        for block in blocks(page):
            try:
                getattr(self, f"_{block.language}")(block)
            except Exception as error:
                raise AssertionError(f"{page.relative_to(ROOT)}, line {block.line}: {error}\n{self.printed[-2000:]}") from error

    def _text(self, block: Block) -> None:
        pass

    def _json(self, block: Block) -> None:
        json.loads(block.text)

    def _toml(self, block: Block) -> None:
        tomllib.loads(block.text)
        self._keep(block)

    def _javascript(self, block: Block) -> None:
        """A program is kept, for the lines that run it; of a piece of a page, the grammar is looked at."""
        name = self._keep(block._replace(text=block.text.replace(PORT, self.port)))
        if name is None and NODE is not None:
            done = subprocess.run([NODE, "--check", "--input-type=module", "-"], input=block.text, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr

    def _python(self, block: Block) -> None:
        text = block.text.replace(PORT, self.port)
        if ">>>" in text:
            self._doctest(text)
        elif name := self._keep(block):
            invalidate_caches()
            self.modules.append(name.removesuffix(".py"))
            self.names.update(vars(import_module(self.modules[-1])))
        else:
            with self._listening():
                exec(compile(text, f"line {block.line}", "exec"), self.names)

    def _doctest(self, text: str) -> None:
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        complaints = io.StringIO()
        example = doctest.DocTestParser().get_doctest(text, self.names, "page", None, 0)
        runner.run(example, out=complaints.write, clear_globs=False)
        self.names.update(example.globs)
        assert not runner.failures, complaints.getvalue()

    def _sh(self, block: Block) -> None:
        lines = [line for line in map(self._instead, commands(block.text)) if line is not None]
        if any(OPERATORS.search(line) or not line.startswith("albatross ") for line in lines):
            self._type("\n".join(lines))
            return
        for line in lines:
            with self._listening():
                code = main(shlex.split(line)[1:])
            assert code == 0, f"{line} ended with {code}"

    def _instead(self, line: str) -> str | None:
        """What is typed in place of a line: another one, or none where `INSTEAD` says so or the data are not here."""
        told = [instead for beginning, instead, _ in INSTEAD if line.startswith(beginning)]
        if told:
            return told[0]
        if any(name in line and not present(name) for name in datasets.names()):
            return None
        if line.startswith("node ") and NODE is None:
            return None
        line = line.replace("albatross serve", f"albatross serve --port {self.port}")
        return line.replace(f":{PORT}", f":{self.port}").replace(*PATIENCE)

    def _type(self, text: str) -> None:
        """Give lines to the shell, and wait until they are done."""
        if self._shell is None:
            self._shell = self._open_shell()
            text = f"{ENDING}\n{text}"
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        end = secrets.token_hex(8)
        self._shell.stdin.write(f"{text}\nprintf '\\n{end}\\n'\n")
        self._shell.stdin.flush()
        for line in self._shell.stdout:
            if line.strip() == end:
                return
            self.printed += line
        raise AssertionError(f"the shell ended with {self._shell.wait()}: {(self.folder / 'complaints').read_text()[-2000:]}")

    def _open_shell(self) -> subprocess.Popen[str]:
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "albatross").write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -c "import albatross.cli as cli; raise SystemExit(cli.main())" "$@"\n'
        )
        (programs / "albatross").chmod(0o755)
        variables = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "200"}
        with (self.folder / "complaints").open("w") as complaints:
            return subprocess.Popen(
                ["bash", "-euo", "pipefail"],
                cwd=self.folder,
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )

    def _keep(self, block: Block) -> str | None:
        """Write a block that begins with the name of a file to that file."""
        if not (named := NAMED.match(block.text)):
            return None
        (self.folder / named[1]).write_text(block.text, encoding="utf-8")
        return named[1]

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard):
            yield
        self.printed += heard.getvalue()

    def leave(self) -> None:
        """End the shell and what it started."""
        for module in self.modules:
            sys.modules.pop(module, None)
        if self._shell is not None:
            assert self._shell.stdin is not None
            assert self._shell.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                self._shell.stdin.close()
            self._shell.stdout.read()
            self._shell.wait()
            self._shell.stdout.close()


def present(name: str) -> bool:
    """Whether the archive of a data set is on this machine."""
    return archive.find(datasets.create(name, {}).needed()[0]) is not None


@contextlib.contextmanager
def reader(folder: Path) -> Iterator[Reader]:
    """A reader in that folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        patch.setenv("COLUMNS", "200")
        somebody = Reader(folder)
        try:
            yield somebody
        finally:
            somebody.leave()
