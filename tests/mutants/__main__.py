"""Put the listed faults into a copy of the checkout, one at a time, and see whether the tests notice.

    python -m mutants [words …] [--again] [--minutes M]

With words, only faults whose name contains one of them. What was found before is kept in out/mutants and not tried again while the
fault, its file and its tests are the same; --again forgets it. After so many minutes no further fault is begun: the next call goes on.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from mutants.listed import TREE, Mutant, read_list

FOLDER = TREE / "out" / "mutants"
COPIED = (
    "src",
    "tests",
    "benchmarks",
    "docs",
    "studies",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "mkdocs.yml",
    "pyproject.toml",
    "Makefile",
)
LONGEST = 300.0
"""Seconds after which tests that hang have noticed."""
ENOUGH = 0.95
"""The share that must be caught of those that are not argued to be equivalent."""

PASSED, FAILED = 0, 1
"""Exit codes of pytest; all others say that the selection itself is wrong."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description="Whether the tests notice the faults of the kept list.")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--minutes", type=float, default=1e9)
    given = parser.parse_args()
    mutants = [mutant for mutant in read_list() if not given.words or any(word in mutant.name for word in given.words)]
    known = {} if given.again else _read()
    waiting = [mutant for mutant in mutants if _key(mutant) not in known]
    if waiting:
        tree = _copy()
        if not _sound(tree, waiting, known):
            return 2
        began = time.monotonic()
        for number, mutant in enumerate(waiting, start=1):
            if time.monotonic() - began > 60 * given.minutes:
                break
            word, seconds = _try(tree, mutant)
            known[_key(mutant)] = word
            _write(known)
            print(f"{number:4} of {len(waiting)}  {word:9} {seconds:6.1f} s  {mutant.name}", flush=True)
    return _report(mutants, known)


def _report(mutants: Iterable[Mutant], known: dict[str, str]) -> int:
    words = {mutant: known.get(_key(mutant), "waits") for mutant in mutants}
    for mutant, word in words.items():
        if word != "caught" and not (word == "survived" and mutant.equivalent):
            print(f"{word}: {mutant.name}: {mutant.old!r} as {mutant.new!r}")
    for mutant in words:
        if mutant.equivalent:
            print(f"equivalent: {mutant.name}: {mutant.equivalent}")
    counted = [word for mutant, word in words.items() if not mutant.equivalent]
    caught = counted.count("caught")
    print(f"{len(words)} faults: {caught} of {len(counted)} caught, {len(words) - len(counted)} argued to be equivalent")
    return 0 if caught >= ENOUGH * len(counted) else 1


def _copy() -> Path:
    """A copy of the checkout, with the times of its files: compiled code is kept by them."""
    tree = FOLDER / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for name in COPIED:
        source = TREE / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            tree.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, tree / name)
    return tree


def _sound(tree: Path, mutants: list[Mutant], known: dict[str, str]) -> bool:
    """Whether all tests pass that are to notice something: otherwise they would notice anything."""
    for interpreted in (True, False):
        tests = sorted({test for mutant in mutants if mutant.interpreted is interpreted for test in mutant.tests})
        key = _digest(["sound", str(interpreted), *tests, *map(_content, sorted((TREE / "src").rglob("*.py")))])
        if not tests or key in known:
            continue
        print(f"{len(tests)} selections without a fault, {'interpreted' if interpreted else 'compiled'} …", flush=True)
        code = _pytest(tree, tests, interpreted, longest=3600.0, stop=False)
        if code != PASSED:
            print(f"pytest ended with {code}: the tests must pass before they can notice anything")
            return False
        known[key] = "sound"
        _write(known)
    return True


def _try(tree: Path, mutant: Mutant) -> tuple[str, float]:
    file = tree / mutant.file
    content, times = file.read_bytes(), file.stat()
    began = time.monotonic()
    file.write_text(mutant.applied(content.decode()), encoding="utf-8")
    try:
        code = _pytest(tree, mutant.tests, mutant.interpreted, LONGEST, stop=True)
    finally:
        file.write_bytes(content)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    word = {PASSED: "survived", FAILED: "caught"}.get(code, f"error {code}")
    return word, time.monotonic() - began


def _pytest(tree: Path, tests: Iterable[str], interpreted: bool, longest: float, stop: bool) -> int:
    """The exit code of pytest in the copy; tests that hang count as failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--override-ini=addopts=", *OPTIONS]
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "ALBATROSS_CACHE": str(FOLDER / "cache"),
        "NUMBA_DISABLE_JIT": "1" if interpreted else "0",
    }
    with (FOLDER / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [*command, *(["-x"] if stop else []), *tests], cwd=tree, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            return process.wait(longest)
        except subprocess.TimeoutExpired:
            return FAILED
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


OPTIONS = ("--import-mode=importlib", "-W", "error", "-p", "no:schemathesis", "--doctest-modules")
"""As in pyproject.toml, without what spreads tests over processes."""


def _key(mutant: Mutant) -> str:
    """The same while nothing changes that the outcome may depend on most."""
    files = [mutant.file, *(test.partition("::")[0] for test in mutant.tests)]
    return _digest([mutant.old, mutant.new, *mutant.tests, str(mutant.interpreted), *(_content(TREE / file) for file in files)])


def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _digest(parts: list[str]) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _read() -> dict[str, str]:
    path = FOLDER / "found.json"
    found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _write(known: dict[str, str]) -> None:
    (FOLDER / "found.json").write_text(json.dumps(known, indent=0))


if __name__ == "__main__":
    sys.exit(main())
