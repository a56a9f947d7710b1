"""A report as data, written as Markdown and as one HTML page that needs no other file."""

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.7rem; text-align: left; font-variant-numeric: tabular-nums; }
th { border-bottom: 2px solid #888; }
th.number, td.number { text-align: right; }
img { max-width: 100%; }
code { background: #f3f3f3; padding: 0.1rem 0.3rem; }
td.reproduced, td.not-reproduced, td.undecided { white-space: nowrap; font-weight: 600; }
td.reproduced { color: #00664a; } td.not-reproduced { color: #a33c00; } td.undecided, td.no-verdict { color: #555; }
@media (max-width: 48rem) {
  body { font-size: 15px; overflow-wrap: anywhere; }
  table, tbody, tr, td { display: block; }
  tr:has(th) { display: none; }
  tr { border-bottom: 2px solid #ddd; padding: 0.4rem 0; }
  td, td.number { display: flex; justify-content: space-between; gap: 1rem; text-align: right; border: 0; padding: 0.1rem 0; }
  td::before { content: attr(data-label); color: #555; flex: none; text-align: left; font-weight: 400; }
}
"""

VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">'
"""Without it a phone draws a page for a desk, and shrinks it."""

WORDS = ("reproduced", "not reproduced", "undecided", "no verdict")
"""Verdicts, which have colours of their own."""

A_NUMBER = re.compile(r"–|[-−]?[\d,.]+ ?%?( \[[^\]]*\])?")
"""A number as tables have it, alone or with its interval; or none."""

NUMBER = ' class="number"'


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
            rule = ["---:" if number else "---" for number in _are_numbers(headings, rows)]
            lines = [headings, rule, *rows]
            return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        case Picture(file, caption):
            return f"![{caption}]({file.name})\n\n*{caption}*"


def as_html(title: str, blocks: Sequence[Block]) -> str:
    body = "\n".join(_html(block) for block in blocks)
    head = f'<meta charset="utf-8">{VIEWPORT}<title>{html.escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{html.escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Grid(headings, rows):
            numbers = _are_numbers(headings, rows)
            titles = zip(headings, numbers, strict=True)
            head = "".join(f"<th{NUMBER if number else ''}>{html.escape(title)}</th>" for title, number in titles)
            lines = ("".join(_cell(*each) for each in zip(row, headings, numbers, strict=True)) for row in rows)
            return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
        case Picture(file, caption):
            data = base64.b64encode(file.read_bytes()).decode()
            image = f'<img alt="{html.escape(caption)}" src="data:image/svg+xml;base64,{data}">'
            return f"<figure>{image}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _are_numbers(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[bool]:
    """Per column whether all of it are numbers, with or without an interval: these stand to the right."""
    columns = list(zip(*rows, strict=True)) or [()] * len(headings)
    return [bool(column) and all(A_NUMBER.fullmatch(cell) for cell in column) for column in columns]


def _cell(text: str, heading: str, number: bool) -> str:
    kind = NUMBER if number else f' class="{text.replace(" ", "-")}"' if text in WORDS else ""
    return f'<td{kind} data-label="{html.escape(heading)}">{html.escape(text)}</td>'
