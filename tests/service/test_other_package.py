"""A policy in another package, installed into its own environment, can do all that ours can."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from live import Live

import albatross
from albatross.studies.journal import RESULTS

SKELETON = (Path(__file__).parent.parent.parent / "docs" / "skeleton.py").read_text()

METADATA = "Metadata-Version: 2.1\nName: thompsons\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: by-hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
ENTRY_POINTS = """[albatross.policies]
thompson = thompsons.policy:Thompson
alb = thompsons.policy:Thompson
broken = thompsons.missing:Nothing
"""

KERNEL = '''"""What the policy calls."""

from albatross.kernels.compiling import kernel


@kernel
def drawn(mean: float, draw: float) -> float:
    return mean + draw
'''

STUDY = """
horizon = 200
seeds = 2
datasets = [{ name = "uniform", n_users = 5, n_items = 6, rank = 2 }]
[[policies]]
name = "thompson"
[[policies]]
name = "beside.py:Skeleton"
"""


class Elsewhere(NamedTuple):
    """An environment with the package in it, and a folder to work in."""

    python: str
    folder: Path
    sources: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`albatross` with these arguments, in that environment."""
        code = "import sys; from albatross.cli import main; sys.exit(main())"
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
        command = [self.python, "-c", code, *arguments]
        return subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True, check=False)

    def told(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    root = tmp_path_factory.mktemp("elsewhere")
    policy = SKELETON.replace("class Skeleton(", "class Thompson(").replace("Skeleton(exploration", "Thompson(exploration")
    policy = policy.replace("slate.scores[position] = slate.means[position]", "slate.scores[position] = drawn(slate.means[position], 0.0)")
    policy = policy.replace("import numpy as np\n", "import numpy as np\n\nfrom thompsons.kernels import drawn\n")
    wheel = root / "thompsons-1.0-py3-none-any.whl"
    files = {"__init__.py": "", "kernels.py": KERNEL, "policy.py": policy}
    about = {"METADATA": METADATA, "WHEEL": WHEEL, "entry_points.txt": ENTRY_POINTS}
    content = {f"thompsons/{name}": text for name, text in files.items()} | {
        f"thompsons-1.0.dist-info/{name}": about[name] for name in about
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
        archive.writestr("thompsons-1.0.dist-info/RECORD", "".join(f"{name},,\n" for name in content))
    venv.create(root / "environment", symlinks=True)
    python = root / "environment" / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(root / "environment")}))
    here = [str(Path(albatross.__file__).parent.parent), sysconfig.get_path("purelib")]
    (packages / "present.pth").write_text("\n".join(here) + "\n")
    install = ["--python", str(python), "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    (root / "work").mkdir()
    (root / "work" / "beside.py").write_text(SKELETON)
    (root / "work" / "study.toml").write_text(STUDY)
    return Elsewhere(str(python), root / "work", packages / "thompsons")


@pytest.mark.xdist_group("other package")
def test_it_is_listed_checked_and_run(elsewhere: Elsewhere) -> None:
    listed = elsewhere.told("list")
    assert "thompson  Show the item this user has rated best so far" in listed
    assert "policy 'alb' of package thompsons 1.0 is hidden by the one of albatross; accepted for it: thompsons.policy:Thompson" in listed
    assert "policy 'broken' of package thompsons 1.0 cannot be used: there is no module 'thompsons.missing'" in listed
    assert "thompson passes every check" in elsewhere.told("check", "thompson")
    several = ["--policy", "thompson", "--set", "exploration=0.2", "--policy", "beside.py:Skeleton", "--policy", "random"]
    told = elsewhere.told("run", *several, "--dataset", "gaussian", "--horizon", "100", "--seeds", "1", "--json", "result.json")
    assert "thompson exploration=0.2" in told
    results = json.loads((elsewhere.folder / "result.json").read_text())["policies"]
    assert [result["name"] for result in results] == ["thompson", "beside.py:Skeleton", "random"]
    assert [result["source"] is None for result in results] == [False, False, True]


@pytest.mark.xdist_group("other package")
def test_a_study_is_the_same_on_all_cores_and_on_a_cluster(elsewhere: Elsewhere) -> None:
    pytest.importorskip("ray", reason="needs the extra: pip install '.[ray]'")
    for engine in ("local", "ray"):
        told = elsewhere.told("study", "run", str(elsewhere.folder / "study.toml"), "--jobs", "2", "--engine", engine, "--folder", engine)
        assert "thompson" in told
        assert "beside.py:Skeleton" in told
    local, cluster = (elsewhere.folder / engine / RESULTS for engine in ("local", "ray"))
    assert local.read_bytes() == cluster.read_bytes()


@pytest.mark.xdist_group("other package")
def test_it_serves_survives_a_kill_and_is_refused_once_it_has_changed(elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    shop = elsewhere.folder / "shop"
    with Live(shop, "--policy", "thompson", python=elsewhere.python) as live:
        for number in range(20):
            decision = live.post("/v1/recommend", {"user": f"u{number % 3}", "candidates": ["tea", "coffee", "mate"]}).json
            assert decision["policy"] == "thompson"
            assert live.post("/v1/feedback", {"event_id": str(number), "decision_id": decision["decision_id"], "rating": 4}).status == 200
        live.kill()
    with Live(shop, scale=None, python=elsewhere.python) as live:
        assert live.get("/v1/version").json["ratings"] == 20
        live.kill()
    told = elsewhere.told("verify", str(shop), "--decisions")
    assert "20 decisions come out the same" in told

    kernels = elsewhere.sources / "kernels.py"
    kernels.write_text(KERNEL.replace("mean + draw", "mean + draw + 1.0"))
    refused = elsewhere.run("verify", str(shop))
    assert refused.returncode == 2
    assert "the source of policy 'thompson' has changed: the folder was learned with digest" in refused.stderr
    (elsewhere.folder / "more.csv").write_text("user,item,rating\nann,tea,5\n")
    assert "accepted: the old source, or --accept-changed-policy" in elsewhere.run("import", str(shop), "more.csv").stderr
    elsewhere.told("import", str(shop), "more.csv", "--accept-changed-policy")
    told = elsewhere.told("verify", str(shop), "--decisions")
    assert "21 ratings" in told
    assert "20 are from before a change" in told
    kernels.write_text(KERNEL)
    assert "has changed" in elsewhere.run("verify", str(shop)).stderr
