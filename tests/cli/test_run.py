"""`albatross run`, from arguments to files."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from albatross import simulate
from albatross.cli import main
from albatross.environments.synthetic import Gaussian
from albatross.policies.alb import ALB
from albatross.policies.item_mean import ItemMean
from albatross.policies.random import Random
from albatross.simulation.shards import simulate_shards

SMALL = ["--dataset", "gaussian", "--world", "n_users=8", "--world", "n_items=6", "--horizon", "120"]
RUN = ["run", "--policy", "random", *SMALL, "--seeds", "2", "--jobs", "1"]
LONG = ["run", "--policy", "random", "--dataset", "gaussian", "--seeds", "1", "--horizon"]


def run_json(path: Path, *arguments: str) -> Any:
    assert main([*arguments, "--json", str(path)]) == 0
    return json.loads(path.read_text())


def test_each_setting_belongs_to_the_policy_before_it(tmp_path: Path) -> None:
    policies = ["--policy", "alb", "--set", "ridge=0.01", "--set=rank=2", "--policy=random", "--policy", "alb", "--set", "ridge=3"]
    content = run_json(tmp_path / "out.json", "run", *policies, *SMALL, "--seeds", "1")
    assert [policy["name"] for policy in content["policies"]] == ["alb", "random", "alb"]
    assert content["policies"][0]["parameters"] == ALB(ridge=0.01, rank=2).parameters()
    assert content["policies"][1]["parameters"] == {}
    assert content["policies"][2]["parameters"] == ALB(ridge=3.0).parameters()


def test_the_file_holds_what_a_simulation_says(tmp_path: Path) -> None:
    content = run_json(tmp_path / "out.json", *RUN, "--first-seed", "5")
    assert {"dataset", "horizon", "policies"} <= set(content)
    assert (content["dataset"], content["horizon"], content["protocol"]) == ("gaussian", 120, "with repeats")
    assert content["dataset_parameters"]["n_users"] == 8
    (policy,) = content["policies"]
    assert [run["seed"] for run in policy["runs"]] == [5, 6]
    for run in policy["runs"]:
        recording = simulate(Random(), Gaussian(n_users=8, n_items=6), horizon=120, seed=run["seed"])
        assert set(run) == {"seed", "checkpoints", "regret", "pseudo_regret", "seconds"}
        assert run["checkpoints"][-1] == 120
        steps = np.array(run["checkpoints"])
        assert run["regret"] == pytest.approx(np.cumsum(recording.regret)[steps - 1])
        assert run["pseudo_regret"] == pytest.approx(np.cumsum(recording.pseudo_regret)[steps - 1])
        assert run["seconds"] > 0


def test_json_goes_to_standard_output_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [policy["name"] for policy in content["policies"]] == ["random"]


def test_few_seeds_are_named_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN[:-4], "--seeds", "4", "--jobs", "1"]) == 0
    few = capsys.readouterr().out
    assert main([*RUN[:-4], "--seeds", "5", "--jobs", "1"]) == 0
    assert "95 % t-interval" in few
    assert "fewer than 5 seeds: Student's t-intervals, too few for a verdict" in few
    assert "seeds:" not in capsys.readouterr().out


def test_the_table_names_policies_and_their_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = run_json(tmp_path / "out.json", *RUN, "--policy", "alb", "--set", "ridge=0.01")
    output = capsys.readouterr()
    assert output.err == ""
    assert "8 users, 6 items" in output.out
    assert "alb ridge=0.01" in output.out
    for policy in content["policies"]:
        mean = np.mean([run["regret"][-1] for run in policy["runs"]])
        (line,) = (line for line in output.out.splitlines() if line.strip().startswith(policy["name"]))
        assert f"{mean:,.1f}" in line
    assert max(map(len, output.out.splitlines())) <= 80


def test_long_settings_keep_the_numbers_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    settings = [word for name in ("ridge", "noise", "user_scale", "item_scale") for word in ("--set", f"{name}=0.123456")]
    assert main(["run", "--policy", "alb", *settings, *SMALL, "--seeds", "2", "--jobs", "1"]) == 0
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    assert "…" not in output
    assert "item_scale=0.123456" in output


def test_a_file_of_ratings(tmp_path: Path) -> None:
    path = tmp_path / "films.csv"
    path.write_text("who;item;stars;note\nann;heat;4;x\nann;alien;1;y\nbob;alien;3;\n", encoding="utf-8")
    columns = ["--user-column", "who", "--rating-column", "stars"]
    common = ["run", "--policy", "oracle", "--policy", "random", "--dataset", str(path), *columns, "--horizon", "60", "--seeds", "1"]
    content = run_json(tmp_path / "out.json", *common)
    assert content["dataset"] == str(path)
    assert content["dataset_parameters"]["n_ratings"] == 3
    oracle, random = (policy["runs"][0] for policy in content["policies"])
    assert oracle["regret"][-1] == 0.0
    assert random["regret"][-1] > 0.0
    assert random["regret"][-1] % 3 == 0  # ann's two ratings lie 3 apart
    assert random["regret"] == random["pseudo_regret"]


@pytest.mark.parametrize(("name", "beginning"), [("regret.png", b"\x89PNG\r"), ("regret.SVG", b"<?xml"), ("regret.png.pdf", b"%PDF-")])
def test_a_figure_in_the_format_of_its_name(name: str, beginning: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    assert main([*RUN, "--figure", str(path)]) == 0
    assert path.read_bytes().startswith(beginning)
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_arguments_give_the_same_file_in_any_process(tmp_path: Path) -> None:
    def without_times(content: Any) -> Any:
        for policy in content["policies"]:
            for run in policy["runs"]:
                del run["seconds"]
        return content

    arguments = ["run", "--policy", "alb", "--set", "rank=2", *SMALL, "--seeds", "2"]
    here = run_json(tmp_path / "here.json", *arguments, "--jobs", "1")
    command = [*arguments, "--jobs", "2", "--json", str(tmp_path / "there.json")]
    subprocess.run([sys.executable, "-c", "import sys; from albatross.cli import main; sys.exit(main())", *command], check=True)
    assert without_times(json.loads((tmp_path / "there.json").read_text())) == without_times(here)


REFUSED: dict[str, tuple[list[str], str]] = {
    "policy": (["run", "--policy", "albb", *SMALL], "unknown policy 'albb'. Did you mean 'alb'? There is: alb, "),
    "parameter": ([*RUN, "--set", "x=1"], "unknown parameter of Random 'x'. There is: none"),
    "near parameter": (["run", "--policy", "alb", "--set", "rige=1", *SMALL], "Did you mean 'ridge'?"),
    "value": (["run", "--policy", "alb", "--set", "ridge=-1", *SMALL], "ridge is -1.0; accepted: a number, above 0"),
    "not a value": (["run", "--policy", "alb", "--set", "rank=2.5", *SMALL], "rank is '2.5'; accepted: a whole number, at least 1"),
    "setting without policy": (["run", "--set", "ridge=1", "--policy", "alb", *SMALL], "--set ridge=1 comes before any --policy"),
    "setting without value": (["run", "--policy", "alb", *SMALL, "--set"], "--set is given without a value"),
    "policy without name": (["run", "--policy", "--dataset", "gaussian"], "--policy is given without a value"),
    "setting without equals": (["run", "--policy", "alb", "--set", "ridge", *SMALL], "--set is 'ridge'; accepted: key=value"),
    "setting twice": (["run", "--policy", "alb", "--set", "rank=1", "--set", "rank=2", *SMALL], "rank more than once (1 and 2)"),
    "policy twice": ([*RUN, "--policy", "random"], "policy 'random' is given twice"),
    "no data set": (["run", "--policy", "random"], "--dataset"),
    "data set": (["run", "--policy", "random", "--dataset", "unifrom"], "unknown data set 'unifrom'. Did you mean 'uniform'?"),
    "world": ([*RUN, "--world", "rnk=2"], "unknown parameter of Gaussian 'rnk'. Did you mean 'rank'?"),
    "world without equals": ([*RUN, "--world", "rank"], "--world is 'rank'; accepted: key=value"),
    "column of a world": ([*RUN, "--item-column", "x"], "unknown parameter of Gaussian 'item_column'"),
    "horizon": (
        [*LONG, "0"],
        "--horizon is 0; accepted: a whole number, at least 1",
    ),
    "negative horizon": ([*LONG, "-3"], "--horizon is -3"),
    "word for a horizon": ([*LONG, "long"], '"long"'),
    "endless horizon": (
        [*LONG, str(10**14)],
        "would take about",
    ),
    "seeds": (["run", "--policy", "random", *SMALL, "--seeds", "0"], "--seeds is 0; accepted: a whole number, at least 1"),
    "first seed": ([*RUN, "--first-seed", "-1"], "--first-seed is -1; accepted: a whole number, at least 0"),
    "jobs": (["run", "--policy", "random", *SMALL, "--jobs", "0"], "--jobs is 0; accepted: a whole number, at least 1"),
    "figure": ([*RUN, "--figure", "regret.jpg"], "--figure is regret.jpg; accepted: a name ending in .png, .svg, .pdf"),
    "json": ([*RUN, "--json", "no/where.json"], "--json is no/where.json; accepted: a file in a folder that exists"),
    "json folder": ([*RUN, "--json", "."], "a folder; accepted: the name of a file"),
    "file": (["run", "--policy", "random", "--dataset", "no.csv"], "no.csv is missing"),
    "option": ([*RUN, "--horizn", "3"], "--horizon"),
    "verb": (["rnu"], 'Did you mean "run"'),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_in_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("albatross: ")
    assert output.err.count("\n") == 1
    assert message in output.err


def test_bad_rows_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "films.csv"
    path.write_text("user,item,rating\na,b,1\na,b,2\n", encoding="utf-8")
    assert main(["run", "--policy", "random", "--dataset", str(path)]) == 2
    assert f"{path}, row 2 (line 3): user 'a' and item 'b'" in capsys.readouterr().err


INTERRUPTED = """
import signal, sys
sys.modules["psutil"] = None  # as on a small machine
from contextlib import contextmanager
from albatross.cli import main, progress

@contextmanager
def told(total):
    yield lambda steps: print("running", flush=True)

progress.progress_bar = told
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores the key, and all that it starts
sys.exit(main())
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_interrupt_key_ends_all_of_it(jobs: str, tmp_path: Path) -> None:
    arguments = ["run", "--policy", "random", "--dataset", "gaussian", "--horizon", "20000", "--seeds", "100000", "--jobs", jobs]
    command = [sys.executable, "-c", INTERRUPTED, *arguments, "--json", str(tmp_path / "out.json")]
    # Without a PATH there is no pgrep, by which workers are found where there is no psutil.
    bare = {**os.environ, "PATH": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=bare) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        for _ in range(2):  # a terminal sends it to the workers too; `timeout -s INT` sends it twice
            os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "albatross: interrupted"
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", [["run", "--dataset"], ["import", "shop", "--scale", "1..5"]], ids=["run", "import"])
def test_a_missing_column_is_told_with_the_flag_that_names_it(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for header, flags in {"who,item,stars": ["--user-column", "--rating-column"], "user,what,rating": ["--item-column"]}.items():
        Path("ratings.csv").write_text(f"{header}\nann,tea,5\n")
        assert main([*verb, "ratings.csv"]) == 2
        told = capsys.readouterr().err
        assert f"its columns: {header.replace(',', ', ')}" in told
        assert re.findall(r"--\w+-column", told) == flags


def test_one_seed_loads_nothing_heavy() -> None:
    code = f"""
import sys
from albatross.cli import main
assert main({["run", "--policy", "random", *SMALL, "--seeds", "1"]}) == 0
print([name for name in ("joblib", "matplotlib", "duckdb", "pandas", "rich.progress") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_without_a_policy_the_default_meets_the_paper_and_chance(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *SMALL, "--seeds", "1"]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert rows[-3:] == ["mean-field", "alb", "random"]


def test_users_live_on_shards_where_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = ["run", "--policy", "item-mean", *SMALL, "--seeds", "1"]
    content = run_json(tmp_path / "out.json", *policy, "--shards", "3", "--exchange", "20")
    assert "8 users, 6 items on 3 shards" in capsys.readouterr().out
    assert (content["shards"], content["exchange"]) == (3, 20)
    recording = simulate_shards(ItemMean(), Gaussian(n_users=8, n_items=6), horizon=120, seed=0, shards=3, exchange=20)
    assert content["policies"][0]["runs"][0]["regret"][-1] == pytest.approx(recording.regret.sum())
    assert main(["run", "--policy", "pts", *SMALL, "--shards", "3"]) == 2
    assert "policy 'pts' runs on one shard" in capsys.readouterr().err
    assert main([*policy, "--exchange", "20"]) == 2
    assert "accepted: --exchange with --shards 2 or more" in capsys.readouterr().err
