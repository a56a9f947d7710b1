"""The first ten minutes, as the README has them: every command is run."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("service-readme")

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    section = README.read_text().partition("## Serve it")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def documents(text: str) -> list[dict[str, Any]]:
    """The JSON objects in a text, whatever stands between them."""
    found = []
    position = text.find('{"')
    while position >= 0:
        document, end = json.JSONDecoder().raw_decode(text, position)
        found.append(document)
        position = text.find('{"', end)
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.mark.skipif(shutil.which("curl") is None, reason="the README asks with curl, and there is none")
def test_every_command_of_the_first_ten_minutes(tmp_path: Path) -> None:
    port = str(free_port())
    commands = "\n".join(blocks("sh"))
    assert commands.count("albatross serve shop.albatross") == 2
    script = commands.replace("albatross serve shop.albatross", f"albatross serve shop.albatross --port {port}").replace("8000", port)
    (tmp_path / "albatross").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "import albatross.cli as cli; raise SystemExit(cli.main())" "$@"\n'
    )
    (tmp_path / "albatross").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "COLUMNS": "200"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    ready, decision, first, second, ready_again, explained, user = documents(done.stdout)
    assert ready["ready"]
    assert ready_again["ready"]
    assert decision["items"][0]["item"] in ("tea", "coffee", "mate")
    assert first["applied"]
    assert second["seq"] == first["seq"] + 1
    assert explained["user_ratings"] == user["ratings"] == 2
    (reason,) = explained["explanation"]["items"]
    assert reason["score"] == reason["mean"] + reason["bonus"]
    assert reason["width_after"] < reason["width"]
    assert "state id" in done.stdout


def test_the_same_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(code, names)
    assert (tmp_path / "shop.albatross").is_dir()
