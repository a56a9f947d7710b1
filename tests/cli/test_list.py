"""`albatross list`, `albatross --version` and the help."""

import dataclasses
import json

import pytest

import albatross
from albatross import environments, policies
from albatross.cli import main


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_every_policy_and_data_set_with_every_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    lines = output_of(capsys, "list").splitlines()
    words = [line.split() for line in lines if line.strip()]
    beginnings = {line[0] for line in words}
    assert {*policies.names(), "gaussian", "uniform", "bernoulli", "FILE"} <= beginnings
    recipes = [(policies.find(name),) for name in policies.names()] + list(environments.recipes().values())
    for parts in recipes:
        assert {field.name for part in parts for field in dataclasses.fields(part)} <= beginnings
    assert max(map(len, lines)) <= 80


def test_one_policy_with_defaults_ranges_and_meanings(capsys: pytest.CaptureFixture[str]) -> None:
    output = output_of(capsys, "list", "alb")
    assert "gaussian" not in output
    (line,) = (line for line in output.splitlines() if line.split()[:1] == ["confidence"])
    assert line.split()[1] == "0.01"
    assert "a number, above 0, below 1" in line
    assert "probability" in line
    assert "linear bandit" in output


def test_one_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    output = output_of(capsys, "list", "bernoulli")
    assert "candidates" in output
    assert "ridge" not in output


def test_a_short_list_has_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    lines = output_of(capsys, "list", "--short").splitlines()
    assert set(policies.names()) <= {line.split()[0] for line in lines if line.strip()}
    assert not any(line.startswith(" ") and "accepted" in line for line in lines)
    assert len(lines) < 0.4 * len(output_of(capsys, "list").splitlines())


def test_a_list_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    everything = json.loads(output_of(capsys, "list", "--json"))
    assert {*policies.names(), "gaussian"} <= set(everything)
    assert everything["gaussian"]["kind"] == "data set"
    found = json.loads(output_of(capsys, "list", "--json", "alb"))
    assert list(found) == ["alb"]
    assert found["alb"]["kind"] == "policy"
    assert found["alb"]["parameters"]["rank"] == {
        "default": 5,
        "accepted": "a whole number, at least 1",
        "meaning": "length of the user and item vectors (k)",
    }


def test_no_option_is_there_that_nobody_meant(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("run",), ("study", "compare"), ("reproduce",), ("serve",), ("list",)):
        assert "--empty-" not in output_of(capsys, *command, "--help")


def test_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "gausian"]) == 2
    assert "Did you mean 'gaussian'?" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert output_of(capsys, "--version").strip() == albatross.__version__


def test_help_names_the_verbs_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    overview = output_of(capsys, "--help")
    assert all(verb in overview for verb in ("run", "list", "demo"))
    options = output_of(capsys, "run", "--help")
    assert all(option in options for option in ("--policy", "--set", "--dataset", "--world", "--horizon", "--seeds", "--json", "--figure"))
