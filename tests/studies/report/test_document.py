"""A report in two formats says the same."""

from pathlib import Path

from albatross.studies.report.document import Block, Grid, Heading, Paragraph, Picture, as_html, as_markdown


def test_a_document_says_the_same_in_both_forms() -> None:
    blocks: list[Block] = [Heading("A < B", 1), Paragraph("x & y"), Grid(("claim", "word"), [["p|q", "not reproduced"]])]
    assert as_markdown(blocks) == "# A < B\n\nx & y\n\n| claim | word |\n| --- | --- |\n| p\\|q | not reproduced |\n"
    page = as_html("t", blocks)
    assert "<h1>A &lt; B</h1>" in page
    assert '<td class="not-reproduced" data-label="word">not reproduced</td>' in page


def test_columns_of_numbers_stand_to_the_right() -> None:
    rows = [["alb", "1,234", "12.3 [10.2, 14.9]", "0.5 against ALB"], ["pts", "–", "-0.1 [–]", "–"]]
    blocks: list[Block] = [Grid(("policy", "seeds", "regret", "remark"), rows)]
    assert "| --- | ---: | ---: | --- |" in as_markdown(blocks)
    page = as_html("t", blocks)
    assert '<th>policy</th><th class="number">seeds</th><th class="number">regret</th><th>remark</th>' in page
    assert '<td class="number" data-label="regret">12.3 [10.2, 14.9]</td>' in page
    assert '<td data-label="policy">alb</td>' in page
    assert '<meta name="viewport"' in page
    assert as_markdown([Grid(("a", "b"), [])]) == "| a | b |\n| --- | --- |\n"


def test_a_page_needs_no_other_file(tmp_path: Path) -> None:
    drawing = tmp_path / "figure.svg"
    drawing.write_text("<svg/>")
    blocks: list[Block] = [Picture(drawing, "Regret & time")]
    assert as_markdown(blocks) == "![Regret & time](figure.svg)\n\n*Regret & time*\n"
    page = as_html("t", blocks)
    assert 'src="data:image/svg+xml;base64,PHN2Zy8+"' in page
    assert "<figcaption>Regret &amp; time</figcaption>" in page
