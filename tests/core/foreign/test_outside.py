"""Policies from files and other modules: how they are found, named, known again and sent to other processes."""

import importlib.metadata
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from albatross import policies, simulate
from albatross.core.errors import InvalidInput
from albatross.core.foreign import outside
from albatross.core.policy import Policy
from albatross.environments.synthetic import Uniform
from albatross.kernels.building.sources import gather
from albatross.kernels.compiling import source_fingerprint
from albatross.policies.random import Random
from albatross.studies.execution import execute
from albatross.studies.showing import label
from albatross.studies.trials import Trial

SKELETON = (Path(__file__).parents[3] / "docs" / "skeleton.py").read_text()
WORLD = Uniform(n_users=3, n_items=4, rank=2)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that has nothing but a policy, to work in."""
    (tmp_path / "mine.py").write_text(SKELETON)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def test_a_file_is_a_policy_by_its_name(folder: Path) -> None:
    policy = policies.create("mine.py:Skeleton", {"exploration": 0.3})
    assert policy.parameters() == {"exploration": 0.3}
    assert policy.policy_name() == "mine.py:Skeleton"
    assert label(policy) == "mine.py:Skeleton exploration=0.3"
    assert policies.find("mine.py") is policies.find(str(folder / "mine.py") + ":Skeleton") is type(policy)
    assert policies.resolve(type(policy)).parameters() == {"exploration": 0.1}
    with pytest.raises(InvalidInput, match=r"unknown parameter of mine.py:Skeleton 'rank'"):
        policies.create("mine.py:Skeleton", {"rank": 3})


def test_two_files_with_the_same_class_have_two_names(folder: Path) -> None:
    for name, value in (("a", "0.15"), ("b", "0.2")):
        (folder / name).mkdir()
        (folder / name / "mine.py").write_text(SKELETON.replace("parameter(0.1", f"parameter({value}"))
    one, other = (policies.create(f"{name}/mine.py:Skeleton") for name in ("a", "b"))
    assert (one.policy_name(), other.policy_name()) == ("a/mine.py:Skeleton", "b/mine.py:Skeleton")
    assert one != other
    assert (one.parameters(), other.parameters()) == ({"exploration": 0.15}, {"exploration": 0.2})


def test_an_edited_file_is_another_policy(folder: Path) -> None:
    before = policies.find("mine.py:Skeleton")
    (folder / "mine.py").write_text(SKELETON + "\n# edited\n")
    after = policies.find("mine.py:Skeleton")
    assert before is not after
    assert source_fingerprint(before) != source_fingerprint(after)
    assert outside.digest_of(before) != outside.digest_of(after)
    assert before().policy_name() == after().policy_name()


@pytest.mark.parametrize(
    ("reference", "content", "sentence"),
    [
        ("other.py:Skeleton", "", r"there is no file other.py; accepted: a .py file that exists"),
        ("mine.py:Skelton", SKELETON, r"unknown policy of mine.py 'Skelton'. Did you mean 'Skeleton'\? There is: Skeleton"),
        (
            "mine.py:State",
            SKELETON,
            r"State of mine.py is no policy: policy is State, which has no select and no update; accepted: a class with",
        ),
        ("mine.py", "x = 1\n", r"mine.py declares no policy"),
        (
            "mine.py",
            SKELETON + "\n\n@dataclass(frozen=True)\nclass Second(Skeleton):\n    pass\n",
            r"mine.py has the policies Skeleton, Second; accepted: one of them, as mine.py:Skeleton",
        ),
        (
            "mine.py:Skeleton",
            "x = 1\nimport nothing_like_it\n",
            r"mine.py cannot be imported: .*mine.py, line 2: ModuleNotFoundError: No mod",
        ),
        ("mine.py:Skeleton", "x = 1\nx = = 2\n", r"mine.py cannot be imported: .*mine.py, line 2: invalid syntax"),
        ("mine.py:Skeleton", "import sys\nsys.exit(3)\n", r"mine.py cannot be imported: .*mine.py, line 2: it ends the process"),
        (
            "mine.py:Skeleton",
            SKELETON.replace("@dataclass(frozen=True)\n", ""),
            r"no frozen dataclass; accepted: @dataclass\(frozen=True\)",
        ),
        ("mine.py:Skeleton", SKELETON.replace("def init(", "def initialise("), r"Skeleton of mine.py does not define init"),
        (
            "mine.py:Skeleton",
            SKELETON.replace("scratch: Scratch, user: int, item", "user: int, item"),
            r"line 8\d: TypeError: learn_rating takes",
        ),
        ("mine:Skeleton", SKELETON, r"there is no module 'mine'. Did you mean the file mine.py\?"),
        ("mine", SKELETON, r"unknown policy 'mine'.*also accepted: file.py:Class and module:Class, as mine.py:Class"),
        ("json:JSONDecoder", "", r"JSONDecoder of json is no policy"),
        ("json.nothing:X", "", r"there is no module 'json.nothing'"),
    ],
)
def test_mistakes_get_sentences(folder: Path, reference: str, content: str, sentence: str) -> None:
    (folder / "mine.py").write_text(content)
    with pytest.raises(InvalidInput, match=sentence):
        policies.create(reference)


def test_what_is_no_policy_at_all_is_refused() -> None:
    for nonsense in (3, object, Policy):
        with pytest.raises(InvalidInput, match="accepted"):
            policies.resolve(nonsense)  # type: ignore[arg-type]


def test_own_modules_count_and_others_do_not(folder: Path) -> None:
    (folder / "mine.py").write_text("import numpy\nfrom deeper_helper import x\n")
    (folder / "deeper_helper.py").write_text("import albatross, json\nimport package_of_helpers.inner\n")
    (folder / "package_of_helpers").mkdir()
    (folder / "package_of_helpers" / "__init__.py").write_text("")
    (folder / "package_of_helpers" / "inner.py").write_text("from . import beside\n")
    (folder / "package_of_helpers" / "beside.py").write_text("")
    (folder / "stranger.py").write_text("")
    before = gather(folder / "mine.py")
    inner = {"package_of_helpers/__init__.py", "package_of_helpers/inner.py", "package_of_helpers/beside.py"}
    assert set(before.files) == {"mine.py", "deeper_helper.py", *inner}
    (folder / "stranger.py").write_text("edited = True\n")
    assert gather(folder / "mine.py").digest == before.digest
    (folder / "package_of_helpers" / "beside.py").write_text("edited = True\n")
    assert gather(folder / "mine.py").digest != before.digest
    assert gather(folder / "package_of_helpers" / "inner.py").name == "package_of_helpers.inner"


def test_a_file_of_a_package_is_loaded_as_its_module(folder: Path) -> None:
    package = folder / "several_files"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "constants.py").write_text("USUAL = 0.25\n")
    source = SKELETON.replace("parameter(0.1", "parameter(USUAL")
    (package / "chooser.py").write_text(source.replace("import numpy as np\n", "import numpy as np\n\nfrom .constants import USUAL\n"))
    policy = policies.create("several_files/chooser.py:Skeleton")
    assert policy.parameters() == {"exploration": 0.25}
    assert policy.policy_name() == "several_files/chooser.py:Skeleton"
    (package / "constants.py").write_text("USUAL = 0.5\n")
    with pytest.raises(InvalidInput, match="has changed since this process loaded it; accepted: a new process"):
        policies.find("several_files/chooser.py:Skeleton")


def test_a_hidden_module_is_noticed(folder: Path) -> None:
    source = SKELETON.replace("import numpy as np\n", "import numpy as np\nimport own_helper\n")
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "own_helper.py").write_text(f"name = {name!r}\n")
        (folder / name / "mine.py").write_text(source)
    policies.find("a/mine.py:Skeleton")
    with pytest.raises(InvalidInput, match=r"b/mine.py imports 'own_helper', which another file of that name hides: .*a.own_helper.py"):
        policies.find("b/mine.py:Skeleton")


RECEIVER = """
import pickle, sys
from albatross import simulate
from albatross.environments.synthetic import Uniform
policy = pickle.load(sys.stdin.buffer)
print(policy.policy_name(), simulate(policy, Uniform(n_users=3, n_items=4, rank=2), horizon=50, seed=1).state_id)
"""


SENDER = """
if __name__ == "__main__":
    import pickle, sys
    sys.stdout.buffer.write(pickle.dumps(Skeleton(exploration=0.3)))
"""


def test_a_process_without_the_file_gets_it_with_the_task(folder: Path) -> None:
    """As on another machine: only with what was sent, here by a script with its own policy and helper."""
    helped = SKELETON.replace("import numpy as np\n", "import numpy as np\n\nimport sent_along\n")
    (folder / "mine.py").write_text(helped + SENDER)
    (folder / "sent_along.py").write_text("x = 1\n")
    sent = subprocess.run([sys.executable, "mine.py"], capture_output=True, check=True).stdout
    (folder / "mine.py").unlink()
    (folder / "sent_along.py").unlink()
    policy = pickle.loads(sent)
    assert policy.policy_name() == "mine.py:Skeleton"
    assert policy.parameters() == {"exploration": 0.3}
    here = simulate(policy, WORLD, horizon=50, seed=1).state_id
    done = subprocess.run([sys.executable, "-c", RECEIVER], input=sent, capture_output=True, cwd=folder.parent, check=False)
    assert done.stdout.decode().split() == ["mine.py:Skeleton", here], done.stderr.decode()
    assert b"compiling" not in done.stderr  # the same source: compiled once


def test_what_was_sent_is_checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parcel = outside.pack(policies.find("mine.py:Skeleton"))
    monkeypatch.setattr(outside, "_by_digest", {})
    monkeypatch.setenv("ALBATROSS_CACHE", str(folder / "cache"))
    (folder / "mine.py").unlink()
    strange = parcel.sources._replace(files={"../mine.py": b""}, digest="strange")
    with pytest.raises(InvalidInput, match=r"name the file \.\./mine\.py, which is not among them"):
        outside.unpack(parcel._replace(sources=strange))


def test_a_policy_written_in_a_function_stays_in_its_process() -> None:
    @dataclass(frozen=True)
    class Local(Random):
        pass

    trials = [Trial(Local(), WORLD, 10, seed) for seed in (0, 1)]
    with pytest.raises(InvalidInput, match="Local' was written in a function, where no other process finds it; accepted: one in a file"):
        list(execute(trials, jobs=2))


class Offers:
    """Entry points, as if packages offered them."""

    def __init__(self, *offers: tuple[str, str]) -> None:
        self.entries = [importlib.metadata.EntryPoint(name, value, outside.GROUP) for name, value in offers]

    def __call__(self, group: str) -> list[importlib.metadata.EntryPoint]:
        assert group == outside.GROUP
        return self.entries


def test_offers_of_packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "offering.py").write_text(SKELETON)
    monkeypatch.syspath_prepend(folder)
    offers: Any = Offers(
        ("alb", "offering:Skeleton"),
        ("good", "offering:Skeleton"),
        ("broken", "offering:Nothing"),
        ("worse", "nowhere:Nothing"),
        ("twice", "offering:Skeleton"),
        ("twice", "offering:State"),
    )
    monkeypatch.setattr(importlib.metadata, "entry_points", offers)
    usable, troubles = policies.offered()
    assert list(usable) == ["good"]
    assert policies.create("good").policy_name() == "good"
    assert policies.find("offering:Skeleton") is usable["good"]
    assert policies.find("alb").__module__ == "albatross.policies.alb"
    told = "\n".join(troubles)
    assert "policy 'alb' of an installed package is hidden by the one of albatross; accepted for it: offering:Skeleton" in told
    assert "policy 'broken' of an installed package cannot be used: unknown policy of offering 'Nothing'" in told
    assert "policy 'worse' of an installed package cannot be used: there is no module 'nowhere'" in told
    assert "policy 'twice' is offered by more than one package; accepted: offering:Skeleton" in told
