"""`python -m matrix`: the wheel in a fresh environment of every supported Python that is on this machine. Needs a package index."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from distribution import ROOT, SMOKE, build

SERVED = """
from albatross import Recommender
with Recommender("shop", scale=(1, 5)) as shop:
    assert shop.rate(shop.recommend("ann", candidates=["tea", "mate"]), 4.0).applied
with Recommender("shop") as shop:
    assert shop.user("ann").ratings == 1
"""


def versions() -> list[str]:
    """Those that the project says it supports."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    prefix = "Programming Language :: Python :: 3."
    return [f"3.{entry.removeprefix(prefix)}" for entry in classifiers if entry.startswith(prefix)]


def interpreter(version: str) -> str | None:
    """A Python of that version which starts; a name on the PATH may be that of one that is not there."""
    installed = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(map(str, installed.glob(f"{version}.*/bin/python")))]
    for candidate in filter(None, candidates):
        said = subprocess.run([candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
        if said.stdout.strip() == version:
            return candidate
    return None


def try_version(python: str, wheel: Path) -> str | None:
    """Install the wheel with the extra `serve` and use it; returns why it could not be installed, if so."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", f"{folder}/venv"], check=True)
        binaries = Path(folder) / "venv" / "bin"
        install = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        # What is pinned is tried first; another Python may need other versions than the pinned ones.
        for constraints in (["--constraint", str(ROOT / "constraints.txt")], []):
            installed = subprocess.run([*install, *constraints, f"{wheel}[serve]"], capture_output=True, text=True)
            if installed.returncode == 0:
                break
        else:
            return installed.stderr.strip().splitlines()[-1]
        variables = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": folder, "PYTHONPATH": ""}
        for command in ([str(binaries / "albatross"), *SMOKE], [str(binaries / "python"), "-c", SERVED]):
            subprocess.run(command, check=True, env=variables, cwd=folder, stdout=subprocess.DEVNULL)
    return None


def main(target: Path) -> int:
    wheel = build(target)
    tried = 0
    for version in versions():
        python = interpreter(version)
        if python is None:
            print(f"{version}: skipped, not on this machine", flush=True)
            continue
        began = time.monotonic()
        refused = try_version(python, wheel)
        tried += refused is None
        print(f"{version}: " + (f"skipped: {refused}" if refused else f"runs ({time.monotonic() - began:.0f} s)"), flush=True)
    return 0 if tried else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(Path(folder)))
