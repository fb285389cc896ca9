"""The table of decisions, and all that reads it, say the same."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from graph_retry import Decision
from graph_retry._core.params.patch import Encoded
from graph_retry._core.review.answers import DecisionType
from graph_retry._core.review.clients.payload import build_payload
from graph_retry._core.review.clients.table import said_in_words
from graph_retry._core.review.decisions import DECISION_TYPES, ROWS, WORDS, form_of, offered
from graph_retry._core.review.effects import End
from graph_retry._core.review.judge import interpret
from graph_retry.desk.cli.answering.decide import from_line, ways
from tests.review.questions import TITLE, judge, question

DOCS = Path(__file__).parents[2].joinpath("docs/reviews.md").read_text(encoding="utf-8")
COLUMNS = ("Agent Chat UI", "Agent Inbox")


def test_every_row_has_its_type() -> None:
    """`DecisionType` is written by hand for type checkers, and lists the rows of the table."""
    assert sorted(get_args(DecisionType)) == sorted(DECISION_TYPES)
    data = [row.data for row in ROWS.values() if row.data]
    assert {*data} <= Decision.__annotations__.keys()
    assert len(data) == len({*data}), "the page names the form of a decision by this key"


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
    can = [kind, "reject"] if ROWS[kind].waits else [kind]
    branches = payload["response_schema"]["oneOf"]
    assert {branch["properties"]["type"]["const"] for branch in branches} == {*can}
    assert {*payload["review_configs"][0]["allowed_decisions"]} == {*can}
    assert any(payload["config"].values())
    assert f'`{{"type": "{kind}"' in payload["description"]
    assert f"{kind.capitalize()}: {ROWS[kind].does(asked)}." in payload["description"]
    (typed,) = [line for line in ways([kind], asked).splitlines() if line.startswith(f"  {kind}")]
    assert ROWS[kind].does(asked) in typed
    assert all(form in typed for form in ROWS[kind].typed)
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
        answer = form_of(kind, params="{}", output="1")
        assert interpret(answer).decision["type"] == kind


def test_the_console_reads_every_row() -> None:
    """A line begins with the word."""
    rest = {"edit": "n=2", "respond": "{}"}
    for kind in ROWS:
        line = f"{kind} {rest.get(kind, '' if kind == 'approve' else 'words')}".strip()
        assert from_line(line, {"n": 1})["type"] == kind


def test_an_answer_that_decides_nothing_is_told_what_would() -> None:
    """Only what is offered here is proposed."""
    asked = question(allowed=("reject", "respond"))
    forms = 'Answer {"type": "reject", "message": "why to stop"}, {"type": "respond", "output": …}'
    for answer in ("perhaps", 7, {}, {"type": "maybe"}):
        assert judge(answer, asked).problem.endswith(f"{forms}, or one word such as reject.")


def test_a_review_that_may_only_wait_can_be_rejected() -> None:
    """With the attempts used up, `edit` is not offered, and `defer` alone would never end it."""
    asked = question(allowed=("edit", "defer"), used_up="no attempt is left")
    assert offered(asked) == ("reject", "defer")
    assert judge("reject", asked).effect.status == "cancelled"


def test_accept_in_the_box_of_agent_inbox_is_asked_again() -> None:
    """Its button of that name calls again, so the word alone is not taken for the opposite."""
    asked = question(takes_output=True)
    typed = [{"type": "response", "args": "Accept."}]
    assert "`overrule`" in judge(typed, asked).problem
    assert judge([{"type": "response", "args": "overrule"}], asked).effect == End("overruled")


@pytest.mark.parametrize("through", ["Python", "form"])
def test_an_edit_that_changes_nothing_approves_a_valid_output(through: str) -> None:
    """Whatever it comes through, the output is taken; the word `retry` calls again."""
    asked = question(failure=None, takes_output=True)
    form = {"decisions": [{"type": "edit", "edited_action": {"name": TITLE, "args": {}}}]}
    sent = {"Python": {"type": "edit", "params": {"top_k": 5}}, "form": form}[through]
    sent = json.loads(json.dumps(sent).replace(TITLE, asked.title))
    assert judge(sent, asked).effect == End("succeeded")
    assert judge("retry", asked).params == asked.params
