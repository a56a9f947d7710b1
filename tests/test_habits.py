"""What is done by habit: hooks before a commit, Python versions, releases."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import matrix
import releasing

ROOT = Path(__file__).parents[1]


def test_hooks_are_our_own_and_are_what_lint_does() -> None:
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in configuration["repos"]] == ["local"]
    hooks = [hook["entry"] for hook in configuration["repos"][0]["hooks"]]
    assert all(hook.startswith(".venv/bin/") for hook in hooks)
    lint = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    programs = [line.strip().removeprefix("$(BIN)/").split()[0] for line in lint.splitlines()[1:]]
    assert set(programs) == {"ruff", "mypy", "lint-imports"}
    for program in programs:
        assert any(f"/{program}" in hook for hook in hooks)


def test_the_matrix_finds_this_python() -> None:
    this = "{}.{}".format(*sys.version_info[:2])
    assert this in matrix.versions()
    assert matrix.versions() == sorted(matrix.versions(), key=lambda version: int(version.partition(".")[2]))
    assert matrix.interpreter("3.99") is None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that is ready to be released."""
    (tmp_path / "src/albatross/core").mkdir(parents=True)
    (tmp_path / "src/albatross/core/version.py").write_text('VERSION = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-16\n\n- A change.\n")
    commit(tmp_path, "init", "--quiet")
    return tmp_path


def commit(folder: Path, *before: str) -> None:
    name = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    for arguments in ([*before] if before else None, ["add", "--all"], [*name, "commit", "--quiet", "--message", "all"]):
        if arguments:
            subprocess.run(["git", *arguments], cwd=folder, check=True)


def test_a_version_is_given_once(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.setenv(name, "nobody")
    for name in ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "nobody@localhost")
    assert releasing.main(project) == 0
    assert capsys.readouterr().out == "v1.2.3\n"
    assert releasing.main(project) == 1
    assert "a version is given once" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("CITATION.cff", "version: 1.2.2\n", "CITATION.cff"),
        ("CHANGELOG.md", "## [Unreleased]\n", "no section"),
        ("CHANGELOG.md", "## [Unreleased]\n\n- One more.\n\n## [1.2.3] - 2026-11-16\n", "belong to no release"),
    ],
)
def test_what_does_not_agree_is_told(project: Path, file: str, content: str, complaint: str) -> None:
    (project / file).write_text(content)
    found = releasing.complaints(project)
    assert any(complaint in line for line in found)
    assert any("not committed" in line for line in found)


@pytest.mark.xdist_group("habits")
def test_tests_of_one_group_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """Otherwise each process compiles the same policies. pytest-xdist knows a group by the end of a test's id."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@habits")
