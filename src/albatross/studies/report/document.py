"""A report as data, written as Markdown and as one HTML page that needs no other file."""

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from albatross.studies.report.embedding import embedded, style
from albatross.studies.report.series import Chart

VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">'
"""Without it, a phone draws the page for a desktop and shrinks it."""

POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
    "style-src 'unsafe-inline'; script-src 'unsafe-inline' data:\">"
)
"""Nothing is loaded from elsewhere: everything is in the file."""

WORDS = ("reproduced", "not reproduced", "undecided", "no verdict", "contradicted")
"""Verdicts, each with its own colour."""

A_NUMBER = re.compile(r"–|[-−]?[\d,.]+ ?%?( \[[^\]]*\])?")
"""A number in a table, alone or with its interval; or a dash."""

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
    charts: Sequence[Chart] = ()
    """Data of the picture: with it, the reader of the page can choose what is drawn. The picture itself is for print and Markdown."""
    quantity: str = "regret"
    """The quantity drawn first."""


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
    """One file with everything in it: it makes no request, and runs only our scripts."""
    pictures = [block for block in blocks if isinstance(block, Picture) and block.charts]
    body = "\n".join(_html(block) for block in blocks)
    scripts = embedded([(picture.quantity, picture.charts) for picture in pictures]) if pictures else ""
    head = f'<meta charset="utf-8">{POLICY}{VIEWPORT}<title>{html.escape(title)}</title><style>{style()}</style>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n<main class="report">\n{body}\n</main>\n{scripts}</body></html>\n'
    )


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
        case Picture(file, caption, charts):
            data = base64.b64encode(file.read_bytes()).decode()
            image = f'<img alt="{html.escape(caption)}" src="data:image/svg+xml;base64,{data}">'
            drawn = f'<figure class="static">{image}<figcaption>{html.escape(caption)}</figcaption></figure>'
            return f'{drawn}<section class="race" aria-label="{html.escape(caption)}"></section>' if charts else drawn


def _are_numbers(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[bool]:
    """Per column, whether it has only numbers, with or without an interval: these are right-aligned."""
    columns = list(zip(*rows, strict=True)) or [()] * len(headings)
    return [bool(column) and all(A_NUMBER.fullmatch(cell) for cell in column) for column in columns]


def _cell(text: str, heading: str, number: bool) -> str:
    kind = NUMBER if number else f' class="{text.replace(" ", "-")}"' if text in WORDS else ""
    return f'<td{kind} data-label="{html.escape(heading)}">{html.escape(text)}</td>'
