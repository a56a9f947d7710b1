"""A report as data, written as Markdown and as one HTML page that needs no other file."""

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.7rem; text-align: left; font-variant-numeric: tabular-nums; }
th { border-bottom: 2px solid #888; }
img { max-width: 100%; }
code { background: #f3f3f3; padding: 0.1rem 0.3rem; }
td.reproduced, td.not-reproduced, td.undecided { white-space: nowrap; font-weight: 600; }
td.reproduced { color: #00664a; } td.not-reproduced { color: #a33c00; } td.undecided { color: #555; }
"""


class Heading(NamedTuple):
    text: str
    level: int = 2


class Paragraph(NamedTuple):
    text: str


class Grid(NamedTuple):
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


class Picture(NamedTuple):
    file: Path
    """An SVG file beside the report."""
    caption: str


Block = Heading | Paragraph | Grid | Picture


def as_markdown(blocks: Sequence[Block]) -> str:
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Grid(headings, rows):
            lines = [headings, ["---"] * len(headings), *rows]
            return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        case Picture(file, caption):
            return f"![{caption}]({file.name})\n\n*{caption}*"


def as_html(title: str, blocks: Sequence[Block]) -> str:
    body = "\n".join(_html(block) for block in blocks)
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{html.escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Grid(headings, rows):
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in headings)
            lines = ("".join(_cell(cell) for cell in row) for row in rows)
            return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
        case Picture(file, caption):
            data = base64.b64encode(file.read_bytes()).decode()
            image = f'<img alt="{html.escape(caption)}" src="data:image/svg+xml;base64,{data}">'
            return f"<figure>{image}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _cell(text: str) -> str:
    kind = f' class="{text.replace(" ", "-")}"' if text in ("reproduced", "not reproduced", "undecided") else ""
    return f"<td{kind}>{html.escape(text)}</td>"
