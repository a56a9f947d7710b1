"""The service is an extra: research loads nothing of it, and where it is missing, a sentence says so."""

import subprocess
import sys
from pathlib import Path

import pytest

SERVICE_ONLY = ("fsspec", "httptools", "msgspec", "psycopg", "structlog", "uvloop")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_research_loads_nothing_of_the_service() -> None:
    done = run(
        f"""
import sys, albatross, albatross.cli, albatross.studies.execution, albatross.checks
from albatross.policies.alb import ALB
albatross.Agent(ALB(), 2, 2)
print([name for name in {SERVICE_ONLY} if name in sys.modules])
"""
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("missing", ["httptools", "msgspec", "structlog"])
def test_without_the_extra_a_sentence_says_what_to_install(missing: str, tmp_path: Path) -> None:
    done = run(
        f"""
import sys
sys.modules[{missing!r}] = None
import albatross.cli
sys.exit(albatross.cli.main(["serve", {str(tmp_path / "shop")!r}, "--scale", "1..5", "--port", "0"]))
"""
    )
    assert done.returncode == 2
    sentence = f"albatross: this needs {missing}, which is not installed; accepted: pip install 'httptools>=0.6' 'msgspec>=0.18'"
    assert done.stderr.startswith(sentence)


def test_a_folder_needs_nothing_of_postgresql_and_an_address_says_what_it_needs(tmp_path: Path) -> None:
    done = run(
        f"""
import sys
sys.modules["psycopg"] = None
import albatross.cli
from albatross import Recommender
Recommender({str(tmp_path / "shop")!r}, scale=(1, 5), policy="item-mean").close()
sys.exit(albatross.cli.main(["verify", "postgresql://ann@db.example/shop"]))
"""
    )
    assert done.returncode == 2
    assert "albatross: this needs psycopg, which is not installed; accepted: pip install " in done.stderr


def test_without_the_extra_the_import_says_what_to_install() -> None:
    done = run("import sys; sys.modules['msgspec'] = None; from albatross import Recommender")
    assert done.returncode == 1
    assert "ImportError: Recommender: this needs msgspec, which is not installed; accepted: pip install " in done.stderr


def test_without_the_extra_the_help_is_there() -> None:
    done = run("import sys; sys.modules['msgspec'] = sys.modules['httptools'] = None; import albatross.cli; albatross.cli.main(['--help'])")
    assert "serve" in done.stdout
    assert done.stderr == ""
