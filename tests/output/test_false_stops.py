"""No answer is stopped that would have been accepted: documents drawn at random."""

import pytest

from bench import false_stops
from graph_retry._output.partial import growing
from tests.parts import draws


@pytest.fixture
def at_every_character(monkeypatch):
    """Read the text again after every character."""
    monkeypatch.setattr(growing, "_STEP", 1)
    monkeypatch.setattr(growing, "_GROWTH", 10**9)


@pytest.mark.drawn
def test_no_valid_document_is_stopped():
    """A smaller draw of `python -m bench.false_stops`, which streams 10,000 and more."""
    drawn, wrong = false_stops.run_valid(1, draws(40, 1_000))
    assert wrong == []
    assert all(drawn[wrapper] for wrapper in false_stops.WRAPPERS)


@pytest.mark.drawn
@pytest.mark.usefixtures("at_every_character")
def test_no_document_is_too_strange_to_be_judged():
    """Any document may come where another is wanted; most are stopped."""
    drawn, wrong = false_stops.run_foreign(1, draws(25, 1_000))
    assert wrong == []
    assert drawn["stopped"] > drawn["not stopped"] / 2


@pytest.mark.drawn
@pytest.mark.usefixtures("at_every_character")
@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # Python reads the damaged texts, too
def test_no_damaged_document_that_is_mended_is_stopped():
    """Where the reader of the whole mends a slip, the stream was not stopped because of it."""
    drawn, wrong = false_stops.run_damaged(3, draws(200, 3_000))
    assert wrong == []
    assert drawn["accepted as a whole, not stopped"] > 10
