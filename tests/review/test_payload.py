"""The interrupt value serves every client and stays bounded, whatever failed."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.params.patch import Encoded, readable_diff
from graph_retry._core.review.clients.description import MAX_DESCRIPTION
from graph_retry._core.review.clients.payload import build_payload
from graph_retry._core.review.decisions import DECISION_TYPES
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.review_record import (
    IN_JSON,
    SHOWN,
    Question,
    Refused,
    Review,
    Shown,
    parts_of,
)
from graph_retry._core.threads.reviews import PendingReview
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.show import show_review
from graph_retry.records import Failure, Issue
from tests.review.questions import TITLE, Params, Person, judge, question

KEYS = {
    "type",
    "function_name",
    "attempt_count",
    "error",
    "params",
    "suggested_params",
    "suggested_by",
    "failure",
    "issues",
    "alternatives",
    "raw_output",
    "doubts",
    "reasoning",
    "sent",
    "output",
    "repairs",
    "lossless",
    "diff",
    "note",
    "labels",
    "subject",
    "redacted",
    "problem",
    "answer_issues",
    "review_id",
    "asked_at",
    "expires_at",
    "deferred_until",
    "action_requests",
    "review_configs",
    "action_request",
    "config",
    "description",
    "message",
    "reason",
    "response_schema",
}
HOT = Params(temperature=1.5, seed=7)
ANY_TEXT = st.text(st.characters(codec=None), max_size=300)
ISSUE: Issue = {
    "path": "/age",
    "message": "is missing",
    "code": "missing",
    "expected": None,
    "received": None,
}


def failed(message: str) -> Failure:
    """Make a failure with a text of the provider's."""
    return {"kind": "transient", "type": "RateLimitError", "message": message}


def examples_in(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Collect the JSON answers a person could copy out of the description."""
    found = re.findall(r"^- .*? `(\{.*\})`$", payload["description"], re.MULTILINE)
    return [json.loads(text) for text in found if "…" not in text]


def test_every_key_of_the_contract_is_there() -> None:
    """Clients find exactly the documented keys, and the plain facts under them."""
    payload = build_payload(
        question(raw_output="{", issues=[ISSUE], expires_at="2030-01-01T00:00:00Z")
    )
    assert payload.keys() == KEYS
    assert payload["type"] == payload["reason"] == "llm_intervention"
    assert (payload["function_name"], payload["attempt_count"]) == ("extract", 2)
    assert payload["error"] == "RateLimitError: 429 quota"
    assert payload["issues"] == [ISSUE]
    assert payload["raw_output"] == "{"
    assert (payload["review_id"], payload["expires_at"]) == ("r2", "2030-01-01T00:00:00Z")
    assert payload["message"] == "extract failed (attempt 2): RateLimitError: 429 quota"


def test_what_agent_chat_ui_reads() -> None:
    """Buttons need the name twice and the allowed decisions; the title tells failures apart."""
    payload = build_payload(question())
    request, config = payload["action_requests"][0], payload["review_configs"][0]
    assert request["name"] == config["action_name"] == TITLE
    assert config["allowed_decisions"] == ["approve", "edit", "reject", "respond"]
    assert request["args"]["top_k"] == 5
    assert request["description"] == payload["description"]


def test_what_agent_inbox_reads() -> None:
    """It edits `arguments`, which is the same object, and crashes on a null field."""
    payload = build_payload(question())
    request = payload["action_requests"][0]
    assert request["arguments"] is request["args"] is payload["action_request"]["args"]
    assert payload["action_request"]["action"] == TITLE
    assert None not in request["args"].values()
    assert (request["args"]["seed"], payload["params"]["seed"]) == ("null", None)
    assert payload["config"] == {
        "allow_accept": True,
        "allow_edit": True,
        "allow_respond": True,
        "allow_ignore": True,
    }


def test_the_last_attempt_offers_only_a_way_out() -> None:
    """When no attempt is left, nothing that would call again is offered."""
    payload = build_payload(question(allowed=("respond", "reject")))
    assert payload["review_configs"][0]["allowed_decisions"] == ["reject", "respond"]
    assert payload["config"] == {
        "allow_accept": False,
        "allow_edit": False,
        "allow_respond": True,
        "allow_ignore": True,
    }
    assert "Approve" not in payload["description"]
    assert "sends *approve*" not in payload["description"]


def test_a_call_without_params_offers_no_edit() -> None:
    """No form is offered where there is nothing to fill in."""
    payload = build_payload(replace(question(), params={}, codec=ParamsCodec(None)))
    assert payload["config"]["allow_edit"] is False
    assert payload["action_requests"][0]["args"] == {}


def test_the_form_shows_what_an_approval_takes() -> None:
    """With a suggestion the form holds it, and `params` still the ones that failed."""
    failed_params, hot = question().params, question(HOT).params
    asked = question(suggested=HOT, diff=readable_diff(failed_params, hot))
    payload = build_payload(asked)
    assert payload["params"]["temperature"] == 1.0
    assert payload["suggested_params"]["temperature"] == 1.5
    assert payload["action_requests"][0]["args"]["temperature"] == 1.5
    assert {change["path"] for change in payload["diff"]} == {"/temperature", "/seed"}
    assert "/temperature: 1.0 → 1.5" in payload["description"]
    assert "Suggested changes:" in payload["description"]


def test_a_refused_answer_changes_the_title() -> None:
    """Some clients say "Success" whatever happens, and show little more than the title."""
    asked = question(problem="`top_k` expects a number,\nnot `x` [or](http://y).")
    payload = build_payload(asked)
    title = payload["action_request"]["action"]
    assert title == f"Not applied: 'top_k' expects a number, not 'x' [or] (http://y). — {TITLE}"
    assert payload["action_requests"][0]["name"] == title
    assert payload["review_configs"][0]["action_name"] == title
    assert payload["message"] == title


@pytest.mark.parametrize("problem", [None, "no number", "no such field"])
@pytest.mark.parametrize("refused", [None, "no number"])
def test_the_title_of_either_round_is_accepted(problem: str | None, refused: str | None) -> None:
    """A client sends back the title it shows: of this attempt, before or after a refusal."""
    title = build_payload(question(problem=refused))["action_request"]["action"]
    answer = [{"type": "edit", "args": {"action": title, "args": {"top_k": 9}}}]
    assert isinstance(judge(answer, question(problem=problem)), Accepted)
    assert isinstance(judge(answer, question(problem=problem, attempt=3)), Refused)


SITUATIONS: list[dict[str, Any]] = [
    {},
    {"suggested": HOT},
    {"locked": ("prompt", "temperature")},
    {"params": {"prompt": "x" * 1_000}},
    {"params": "bare"},
    {"params": {"n": None}},
]


@pytest.mark.parametrize("situation", SITUATIONS, ids=range(len(SITUATIONS)))
def test_every_printed_example_is_a_good_answer(situation: dict[str, Any]) -> None:
    """An example copied from the description into Studio's box is accepted as it stands."""
    asked = question(**situation)
    found = examples_in(build_payload(asked))
    assert [example["type"] for example in found] == ["approve", "edit", "reject"]
    for example in found:
        verdict = judge(json.dumps(example), asked)
        assert isinstance(verdict, Accepted), verdict


@pytest.mark.parametrize(
    ("output", "shown"),
    [(Person, '{"name": …, "age": …}'), (list[Person], "…"), (dict[str, int], "…"), (None, "…")],
)
def test_the_example_of_an_output_names_its_fields(output: Any, shown: str) -> None:
    """The values are the person's to fill in: a sample copied unread would count as a success."""
    description = build_payload(question(output=output))["description"]
    assert f'`{{"type": "respond", "output": {shown}}}`' in description


def test_params_are_whole_and_everything_else_is_bounded() -> None:
    """Params are shown in full; five megabytes of error hardly at all."""
    big = "x" * 5_000_000
    asked = question(
        {"prompt": big, "n": 1},
        raw_output=big,
        failure=failed(big),
        note=big,
        problem=big,
        issues=[{**ISSUE, "message": big, "path": big, "received": big}] * 1_000,
    )
    payload = build_payload(asked)
    assert payload["params"] is asked.params
    rest = {**payload, "params": None, "action_requests": None, "action_request": None}
    assert len(json.dumps(rest)) < 60_000
    assert len(payload["raw_output"]) <= 2_000
    assert "4,998,040 characters cut" in payload["raw_output"]
    assert len(payload["error"]) <= 1_000
    assert len(payload["issues"]) == 20
    assert len(payload["description"]) <= MAX_DESCRIPTION


@given(
    st.fixed_dictionaries(
        {
            "failure": st.builds(failed, ANY_TEXT),
            "raw_output": st.none() | ANY_TEXT.map(lambda text: text * 20),
            "note": st.none() | ANY_TEXT,
            "problem": st.none() | ANY_TEXT.map(lambda text: text * 10),
            "issues": st.lists(
                st.builds(lambda text: {**ISSUE, "message": text}, ANY_TEXT), max_size=3
            ),
            "locked": st.sampled_from([(), ("prompt",), tuple(Params.model_fields)]),
        }
    )
)
def test_any_question_is_plain_bounded_json(more: dict[str, Any]) -> None:
    """Any text may have failed: the value survives JSON, the checkpointer, and fits its bounds."""
    asked: Question = question(**more)
    payload = build_payload(asked)
    assert json.loads(json.dumps(payload)) == payload
    serde = JsonPlusSerializer()
    assert serde.loads_typed(serde.dumps_typed(payload)) == payload
    assert len(payload["description"]) <= MAX_DESCRIPTION
    assert len(json.dumps(payload)) < 60_000
    for example in examples_in(payload):
        assert isinstance(judge(example, asked), Accepted)


def test_the_description_keeps_its_bound_whatever_there_is_to_tell() -> None:
    """All decisions, many changes and alternatives, and long texts everywhere."""
    long = "A sentence of some words. " * 300
    asked = question(
        allowed=DECISION_TYPES,
        suggested=HOT,
        takes_output=True,
        read={"value": {"name": "Ada"}},
        with_comment=lambda said: Encoded({"prompt": said}, {}),
        locked=("prompt",),
        failure={**failed(long), "type": "Odd" * 200},
        expires_at="2030-01-01T00:00:00Z",
        issues=[{**ISSUE, "message": long, "path": long}] * 9,
        diff=[{"path": long, "before": long, "after": long}] * 9,
        alternatives=[Params(prompt=long).model_dump(mode="json")] * 9,
        labels={"tenant": long},
        **dict.fromkeys(("problem", "raw_output", "reasoning", "note"), long),
    )
    description = build_payload(asked)["description"]
    assert len(description) <= MAX_DESCRIPTION
    for kind in DECISION_TYPES:
        assert f'{{"type": "{kind}"' in description


def test_a_change_at_the_end_of_a_long_text_is_visible():
    """The description shows the part around the first difference, not two equal beginnings."""
    text = "Read the invoice. " * 20
    change = readable_diff({"prompt": text}, {"prompt": f"{text}Use plain numbers."})
    assert "Use plain numbers." in build_payload(question(diff=change))["description"]


def test_a_fact_with_a_heading_is_quoted_in_description_and_console(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An entry of the table is enough; a test of the page shows it there."""
    monkeypatch.setitem(SHOWN, "suggested_by", Shown(heading="Who proposed it"))
    asked = question(suggested=HOT, suggested_by="canary")
    parts = parts_of(build_payload(asked), [], "1")
    shown = PendingReview(**parts, interrupt_id="1", graph=None, config={})
    assert ("Who proposed it", "canary") in shown.quoted
    assert "Who proposed it:\n```text\ncanary\n```" in shown.value["description"]
    show_review(Screen(), shown)
    assert re.search(r"Who proposed it:\s+canary", capsys.readouterr().out)


def test_every_fact_is_documented() -> None:
    """The page has a row for each key of the question that is no field of `Review`."""
    page = Path(__file__).parents[2].joinpath("docs/reviews.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \|", page.partition("| key | content |")[2], re.MULTILINE)
    keys = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert "the field `attempt` has the key `attempt_count`" in " ".join(page.split())
    keys |= {"attempt_count", *(each.name for each in fields(Review))}
    assert keys >= build_payload(question()).keys()
    assert SHOWN.keys() <= {*IN_JSON}
