"""The page about reading shows the reader's own table."""

from bench.costs_page import PAGE, costs, page


def test_the_page_shows_the_costs_that_the_reader_uses():
    """Whoever changes a cost runs `python -m bench.costs_page`."""
    text = PAGE.read_text()
    assert "| String in single quotes | 3 | 0 |" in costs()
    assert page(text) == text
