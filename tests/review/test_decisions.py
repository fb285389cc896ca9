"""The table of decisions, and all that reads it, say the same."""

import re
from pathlib import Path
from typing import get_args

import pytest

from graph_retry import Decision
from graph_retry._params.codec import Encoded
from graph_retry._review.decisions import DECISION_TYPES, ROWS, WORDS, DecisionType
from graph_retry._review.dialects import form_of, interpret, said_in_words
from graph_retry._review.payload import build_payload
from graph_retry.cli.answering.decide import from_line, ways
from tests.review.questions import question

DOCS = Path(__file__).parents[2].joinpath("docs/reviews.md").read_text(encoding="utf-8")
COLUMNS = ("Agent Chat UI", "Agent Inbox")


def test_every_row_has_its_type() -> None:
    """`DecisionType` is written by hand for type checkers, and lists the rows of the table."""
    assert get_args(DecisionType) == DECISION_TYPES
    data = {row.data for row in ROWS.values() if row.data}
    assert data <= Decision.__annotations__.keys()


def test_no_word_means_two_decisions() -> None:
    """Each word stands in one row."""
    words = [word for kind, row in ROWS.items() for word in (kind, *row.words)]
    assert len(words) == len(set(words)) == len(WORDS)


@pytest.mark.parametrize("kind", ROWS)
def test_a_row_is_told_alike_everywhere(kind: str) -> None:
    """Schema, forms, question, console and docs know each decision that is offered."""
    asked = question(
        allowed=(kind,), takes_output=True, with_comment=lambda said: Encoded({"prompt": said}, {})
    )
    payload = build_payload(asked)
    (branch,) = payload["response_schema"]["oneOf"]
    assert branch["properties"]["type"] == {"const": kind}
    assert payload["review_configs"][0]["allowed_decisions"] == [kind]
    assert any(payload["config"].values())
    assert f'`{{"type": "{kind}"' in payload["description"]
    assert ROWS[kind].typed.startswith(kind)
    assert ROWS[kind].typed in ways([kind])
    (line,) = re.findall(rf"^\| {kind} \|.*$", DOCS, re.MULTILINE)
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[3:5] == [ROWS[kind].sent.get(client, "–") for client in COLUMNS]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_the_same_decision_in_the_console_and_in_a_text(word: str) -> None:
    """One table is asked, whatever the channel."""
    said = said_in_words(f"{word.title()}:") or {}
    assert WORDS[said["type"]] == WORDS[word]


def test_the_json_of_each_row_is_understood() -> None:
    """What an error proposes to send is an answer."""
    for kind in ROWS:
        answer = form_of(kind).replace("{…}", "{}").replace('"…"', '"x"').replace("…", "1")
        assert interpret(answer).type == kind


def test_the_console_reads_every_row() -> None:
    """A line begins with the word."""
    rest = {"edit": "n=2", "respond": "{}"}
    for kind in ROWS:
        line = f"{kind} {rest.get(kind, '' if kind == 'approve' else 'words')}".strip()
        assert from_line(line, {"n": 1})["type"] == kind
