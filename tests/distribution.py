"""`python -m distribution FOLDER`: build wheel and source archive, and try the wheel in fresh environments, one per extra.

Needs a package index. `make dist` runs it; the suite builds the wheel and tries it without one.
"""

import email.message
import email.parser
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("cluster", "gym", "lp", "serve", "xls", "ray")
SMOKE = ["run", "--dataset", "gaussian", "--world", "n_users=20", "--world", "n_items=20", "--horizon", "200", "--seeds", "1"]
IMPORTED = {
    "cluster": "albatross.service.storage.postgres.home",
    "gym": "albatross.gym",
    "lp": "scipy",
    "serve": "albatross.service.recommender",
    "xls": "xlrd",
    "ray": "ray",
}
"""What an extra must let one import."""


def build(target: Path) -> Path:
    """The wheel, built from the source archive, as an index would have them."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = target.glob("*.whl")
    return wheel


def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode())


def check_metadata(wheel: Path) -> None:
    """Name, version and extras are those of the project; README is in; tests, studies and data are not."""
    said, project = metadata(wheel), tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    source = (ROOT / "src/albatross/core/version.py").read_text()
    assert said["Name"] == "albatross-bandits"
    assert f'VERSION = "{said["Version"]}"' in source
    assert f"version: {said['Version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert set(said.get_all("Provides-Extra") or []) == set(project["optional-dependencies"])
    assert "Online recommendation from nothing" in str(said.get_payload())
    with zipfile.ZipFile(wheel) as archive:
        outside = [name for name in archive.namelist() if not name.startswith(("albatross/", "albatross_bandits-"))]
        assert not outside, f"the wheel has {outside}"
        assert "albatross/py.typed" in archive.namelist()


def environment(folder: Path) -> Path:
    """A fresh environment; returns its Python."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def try_wheel(wheel: Path, extra: str | None) -> None:
    """Install it and use it: a comparison, and what the extra is for; without the extra, the sentence that says how to get it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        python = environment(Path(folder) / "venv")
        variables = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home), "PYTHONPATH": ""}
        target = str(wheel) if extra is None else f"{wheel}[{extra}]"
        constraints = ["--constraint", str(ROOT / "constraints.txt")]
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints, target], check=True)
        albatross = str(python.with_name("albatross"))
        if extra is not None:
            subprocess.run([python, "-c", f"import {IMPORTED[extra]}"], check=True, env=variables)
            return
        subprocess.run([albatross, *SMOKE], check=True, env=variables, cwd=folder, capture_output=True)
        refused = subprocess.run([albatross, "serve", "shop", "--scale", "1..5"], env=variables, cwd=folder, capture_output=True, text=True)
        assert refused.returncode == 2, refused.stderr
        command = refused.stderr.partition("accepted: ")[2].strip()
        assert command.startswith("pip install "), refused.stderr
        subprocess.run(f"{python} -m {command} --quiet --disable-pip-version-check", shell=True, check=True)
        done = subprocess.run([albatross, "serve", "--help"], env=variables, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def main(target: Path) -> None:
    wheel = build(target)
    check_metadata(wheel)
    print(f"{wheel.name}: name, version, extras and content as they should be", flush=True)
    for extra in (None, *EXTRAS):
        began = time.monotonic()
        try_wheel(wheel, extra)
        print(f"{'no extra' if extra is None else extra}: installed and used in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
