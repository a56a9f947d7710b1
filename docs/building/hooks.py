"""Hooks of the site: generated pages, and places of pages that the navigation does not name."""

import json
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

NOT_IN_PLACE = "More"
"""The section for pages without a folder of their own."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Generate the pages that are not Markdown files, and give every page a place."""
    files.append(File.generated(config, "reference/cli.md", content=command_line()))
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        assert file.abs_src_path is not None
        page, images = notebook(Path(file.abs_src_path))
        files.append(File.generated(config, file.src_uri.removesuffix(".ipynb") + ".md", content=page))
        folder = Path(file.src_uri).parent
        for name, content in images.items():
            files.append(File.generated(config, (folder / name).as_posix(), content=content))
    assert config.nav is not None
    place_the_rest(config.nav, [file.src_uri for file in files.documentation_pages()])
    return files


def command_line() -> str:
    """The commands with all their options, from their own help."""
    from albatross.cli import app

    before, _, after = app.generate_docs().partition("## Table of Contents")
    _, heading, commands = after.partition("**Commands**")
    return before.replace("# albatross\n", "# Command line\n", 1) + heading + commands


def notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, with the output of its cells; and its images by name."""
    import base64

    parts: list[str] = []
    images: dict[str, bytes] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{len(images) + 1}.png"
                images[name] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![What the cell drew]({name})")
            elif text := "".join(output.get("text", data.get("text/plain", ""))).rstrip():
                parts.append(f"```text\n{text}\n```")
    parts.append(f"The notebook itself: [{path.name}]({path.name}).")
    return "\n\n".join(parts) + "\n", images


def place_the_rest(navigation: list[Any], pages: list[str]) -> None:
    """Put each page that the navigation does not name at the end of the section named like its folder."""
    named = set(_named(navigation))
    sections: dict[str, list[Any]] = {}
    for entry in navigation:
        if isinstance(entry, dict):
            sections.update({name.lower(): within for name, within in entry.items() if isinstance(within, list)})
    for page in sorted(set(pages) - named):
        folder = page.partition("/")[0].lower()
        if folder not in sections:
            folder = NOT_IN_PLACE.lower()
        if folder not in sections:
            sections[folder] = []
            navigation.append({NOT_IN_PLACE: sections[folder]})
        sections[folder].append(page)


def _named(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    within = entry.values() if isinstance(entry, dict) else entry
    return [page for part in within for page in _named(part)]
