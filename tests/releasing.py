"""`python -m releasing`: name the commit after its version, once everything says the same. CONTRIBUTING.md has the whole list."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version(root: Path) -> str:
    found = re.search(r'VERSION = "([^"]+)"', (root / "src/albatross/core/version.py").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def complaints(root: Path) -> list[str]:
    """What stands against naming this commit after its version."""
    said, found = version(root), []
    if f"version: {said}\n" not in (root / "CITATION.cff").read_text(encoding="utf-8"):
        found.append(f"CITATION.cff has another version than {said}")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[{re.escape(said)}\] - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        found.append(f"CHANGELOG.md has no section '## [{said}] - date'")
    unreleased = changes.partition("## [Unreleased]")[2].partition("\n## [")[0]
    if re.search(r"^- ", unreleased, re.MULTILINE):
        found.append("CHANGELOG.md has changes that belong to no release")
    if _git(root, "status", "--porcelain"):
        found.append("there are changes that are not committed")
    if _git(root, "tag", "--list", f"v{said}"):
        found.append(f"v{said} exists; a version is given once")
    return found


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def main(root: Path = ROOT) -> int:
    for complaint in (found := complaints(root)):
        print(f"not tagged: {complaint}")
    if not found:
        _git(root, "tag", "--annotate", f"v{version(root)}", "--message", f"albatross {version(root)}")
        print(f"v{version(root)}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
