"""Whatever arrives as an answer, judging it ends in a verdict."""

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.review_record import MAX_PROBLEM, Question, Reading, Refused
from tests.review.questions import TITLE, Color, Params, Style, judge, question

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=20)
    | st.sampled_from(
        ["approve", "edit", "null", "[", '{"type": "approve"}', TITLE, "extract", "r2"]
    )
)
KEYS = st.sampled_from(
    [
        "type",
        "action",
        "params",
        "revised_params",
        "revisedParams",
        "args",
        "arguments",
        "name",
        "edited_action",
        "message",
        "reason",
        "output",
        "attempt",
        "review_id",
        "decision_id",
        "by",
        "resume",
        "decisions",
        "__agui_cancelled__",
        "id",
        "value",
        *Params.model_fields,
    ]
) | st.text(max_size=8)
WORDS = st.sampled_from(
    ["approve", "accept", "retry", "edit", "reject", "response", "ignore", "respond", "comment"]
)


def json_like(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Make nested values whose keys are mostly those that answers have."""
    return st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(KEYS, inner, max_size=4)
            | st.builds(
                lambda word, rest: {**rest, "type": word},
                WORDS,
                st.dictionaries(KEYS, inner, max_size=3),
            )
        ),
        max_leaves=12,
    )


ODD = st.sampled_from(
    [
        object(),
        Reading,
        1j,
        {1, 2},
        b"\xff",
        date(2026, 1, 1),
        Decimal("NaN"),
        Color.RED,
        Style(),
        (1, 2),
        2**5000,
        float("inf"),
        lambda: None,
        {"type": object()},
        {None: 1},
        range(3),
    ]
)
QUESTIONS = [
    question(seen_decisions=("d1",)),
    question({"n": 1, "nested": {"a": [1.0]}}, suggested={"n": 2, "nested": {"a": [2**60 + 1]}}),
    question("bare", output=None, locked=("value",)),
]


def check(answer: Any, asked: Question) -> None:
    """Judge an answer and hold the verdict to its promises."""
    before = json.dumps([asked.params, asked.suggested_params])
    verdict = judge(answer, asked)
    assert json.dumps([asked.params, asked.suggested_params]) == before
    if isinstance(verdict, Refused):
        assert verdict.problem
        assert len(verdict.problem) <= MAX_PROBLEM
        json.dumps(verdict.problem).encode()
        verdict.problem.encode()
        return
    assert isinstance(verdict, Accepted)
    kept = [dict(verdict.decision), verdict.params, verdict.types]
    serde = JsonPlusSerializer()
    assert serde.loads_typed(serde.dumps_typed(kept)) == kept
    assert (verdict.params is None) == (verdict.decision["type"] in ("reject", "respond"))
    if verdict.params is not None:
        asked.codec.decode(verdict.params, verdict.types)


@settings(max_examples=400)
@given(json_like(SCALARS), st.sampled_from(QUESTIONS))
@pytest.mark.slow
def test_any_json_gets_a_verdict(answer: Any, asked: Question) -> None:
    """No JSON-like answer raises, and what is accepted can be stored and decoded."""
    check(answer, asked)


@settings(max_examples=150)
@given(json_like(SCALARS | ODD), st.sampled_from(QUESTIONS))
def test_any_python_value_gets_a_verdict(answer: Any, asked: Question) -> None:
    """Nor does any Python object that somebody passes from code."""
    check(answer, asked)


@settings(max_examples=150)
@given(json_like(SCALARS).map(json.dumps) | st.text(), st.sampled_from(QUESTIONS))
def test_any_text_gets_a_verdict(answer: str, asked: Question) -> None:
    """Nor does any text, JSON or not."""
    check(answer, asked)


@given(
    st.dictionaries(st.sampled_from(sorted(Params.model_fields)), json_like(SCALARS), max_size=4)
)
def test_any_edit_of_typed_params_gets_a_verdict(params: dict[str, Any]) -> None:
    """Nor does any value of any field; accepted params are valid for their type."""
    check({"type": "edit", "params": params}, QUESTIONS[0])
    check({"type": "edit", "edited_action": {"name": TITLE, "args": params}}, QUESTIONS[0])


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("do not look at me")


def nested(depth: int) -> Any:
    """Build a list in a list, `depth` times."""
    value: Any = "approve"
    for _ in range(depth):
        value = [value]
    return value


def looped() -> Any:
    """Build a dict that holds itself."""
    value: dict[str, Any] = {"type": "edit"}
    value["params"] = {"labels": value}
    return value


@pytest.mark.parametrize("make", [Hostile, looped, lambda: nested(50), lambda: nested(100_000)])
def test_hostile_objects_get_a_verdict(make: Any) -> None:
    """Objects that fight back or hold themselves are refused like any other."""
    verdict = judge(make(), question())
    assert isinstance(verdict, Refused)


def test_a_shallow_wrapping_is_still_an_answer() -> None:
    """A few lists around a word are unwrapped; it takes many to be refused."""
    assert isinstance(judge(nested(5), question()), Accepted)
