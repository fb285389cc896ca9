"""Edits are partial, merged onto what was shown, and held to the params' type."""

from dataclasses import replace
from datetime import date
from typing import Any, NotRequired

import pytest
from langgraph.errors import GraphInterrupt
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict

from graph_retry._core.output.validator import Checked
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.review.decisions import offered
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.review_record import Question, Refused
from tests.review.questions import TITLE, Params, Style, judge, question

HOT = Params(temperature=1.5, seed=7)


def edited(asked: Question, params: Any) -> dict[str, Any]:
    """Return the params after an edit in our own dialect."""
    verdict = judge({"type": "edit", "params": params}, asked)
    assert isinstance(verdict, Accepted), verdict
    assert verdict.params is not None
    return verdict.params


def problem_of(asked: Question, answer: Any) -> str:
    """Return why an answer is refused."""
    verdict = judge(answer, asked)
    assert isinstance(verdict, Refused), verdict
    return verdict.problem


def empty_question() -> Question:
    """Ask about a call without params."""
    return replace(question(), params={}, codec=ParamsCodec(None))


def test_an_approval_takes_the_suggestion() -> None:
    """What was shown is the suggestion, so approving takes it, types and all."""
    asked = question(suggested=HOT)
    verdict = judge("approve", asked)
    assert isinstance(verdict, Accepted)
    assert asked.codec.decode(verdict.params or {}, verdict.types) == HOT


def test_an_edit_is_merged_onto_the_suggestion() -> None:
    """Fields the person leaves alone stay as suggested."""
    after = edited(question(suggested=HOT), {"top_k": 9})
    assert (after["top_k"], after["temperature"], after["seed"]) == (9, 1.5, 7)


def test_an_edit_can_put_the_failed_params_back() -> None:
    """The failed attempt's values are an edit when others are suggested."""
    asked = question(suggested=HOT)
    verdict = judge({"type": "edit", "params": {"temperature": 1.0, "seed": None}}, asked)
    assert isinstance(verdict, Accepted)
    assert verdict.decision["params"] == {"temperature": 1.0, "seed": None}
    assert verdict.params == asked.params


@pytest.mark.parametrize("shown", [{"o": {"a": 1, "b": {"c": 2, "d": 3}}}, None])
def test_nested_objects_are_merged_at_every_depth(shown: dict[str, Any] | None) -> None:
    """A partial nested object keeps its siblings, typed or not."""
    if shown:
        after = edited(question(shown), {"o": {"b": {"c": 5}}})
        assert after == {"o": {"a": 1, "b": {"c": 5, "d": 3}}}
    else:
        asked = question(Params(style=Style(tone="loud"), labels={"a": "1"}))
        after = edited(asked, {"style": {"length": "7"}, "labels": {"b": "2"}})
        assert after["style"] == {"tone": "loud", "length": 7, "ratio": 1.0}
        assert after["labels"] == {"a": "1", "b": "2"}


def test_a_form_replaces_a_free_object_whole() -> None:
    """Forms send whole fields, so a key that is missing was taken out."""
    asked = question(Params(labels={"a": "1", "b": "2"}))
    for labels in ({"b": "2"}, '{"b": "2"}'):
        answer = {"type": "edit", "edited_action": {"name": TITLE, "args": {"labels": labels}}}
        verdict = judge(answer, asked)
        assert isinstance(verdict, Accepted)
        assert (verdict.params or {})["labels"] == {"b": "2"}


def test_an_edit_that_changes_nothing_is_an_approval_where_that_is_allowed() -> None:
    """Otherwise it is an edit of no field: a person may call again with the same params."""
    same = {"type": "edit", "params": {"top_k": 5}}
    verdict = judge(same, question())
    assert isinstance(verdict, Accepted)
    assert verdict.decision == {"type": "approve"}
    verdict = judge(same, question(allowed=("edit", "reject")))
    assert isinstance(verdict, Accepted)
    assert verdict.decision == {"type": "edit", "params": {}}


def test_a_locked_field_refuses_a_change_but_not_its_echo() -> None:
    """Forms send every field, so only a real change of a locked one is refused."""
    asked = question(locked=("prompt", "temperature"))
    assert (
        edited(asked, {"prompt": "Read the invoice.", "temperature": "1", "top_k": 9})["top_k"] == 9
    )
    assert "`temperature` is locked" in problem_of(
        asked, {"type": "edit", "params": {"temperature": 0}}
    )


class Options(TypedDict):
    model: str
    tries: NotRequired[int]
    deep: NotRequired[dict[str, float]]


def test_an_absent_field_is_read_by_its_type() -> None:
    """A field the params may have and do not is set like any other."""
    asked = question({"model": "m", "deep": {"a": 1.0}}, codec=ParamsCodec(Options))
    after = edited(asked, {"tries": "3", "deep": {"b": "0.5"}})
    assert after == {"model": "m", "tries": 3, "deep": {"a": 1.0, "b": 0.5}}


def test_an_unknown_field_lists_the_known_ones() -> None:
    """A typo is refused with the name that was probably meant and all the others."""
    problem = problem_of(question(), {"type": "edit", "params": {"Temperature": 0}})
    assert "Did you mean `temperature`?" in problem
    assert "`prompt`" in problem
    assert "`code`" in problem


@pytest.mark.parametrize("shown", [None, {"style": {"tone": "plain"}}])
def test_a_dotted_name_is_told_how_to_reach_inside(shown: dict[str, Any] | None) -> None:
    """A path is no field: untyped params would silently get a field of that name."""
    problem = problem_of(question(shown), {"type": "edit", "params": {"style.tone": "x"}})
    assert 'send an object such as {"style": {"tone": "…"}}' in problem


def test_a_dot_may_be_part_of_a_name() -> None:
    """What is shown under a dotted name is edited by it."""
    asked = question({"a.b": 1, "a": {"b": 2}})
    assert edited(asked, {"a.b": 3}) == {"a.b": 3, "a": {"b": 2}}


@pytest.mark.parametrize("style", [{"tune": "x"}, {"tone": "x", "tune": "y"}])
def test_an_unknown_nested_field_is_refused(style: dict[str, Any]) -> None:
    """A typo inside a nested model is not passed over."""
    assert "tune" in problem_of(question(), {"type": "edit", "params": {"style": style}})


@pytest.mark.parametrize("params", ["new", {"value": "new"}])
def test_a_bare_value_is_edited_with_or_without_its_name(params: Any) -> None:
    """`{"params": "new"}` and `{"params": {"value": "new"}}` are the same edit."""
    verdict = judge({"type": "edit", "params": params}, question("old"))
    assert isinstance(verdict, Accepted)
    assert verdict.decision["params"] == {"value": "new"}
    assert verdict.params == {"value": "new"}


@pytest.mark.parametrize(
    ("kind", "value", "sent", "after"),
    [
        (int, 5, "6", 6),
        (list[int], [1], [2, 3], [2, 3]),
        (list[int], [1], "[2]", [2]),
        (str, "a", "6", "6"),
    ],
)
def test_a_bare_value_is_restored_by_its_type(kind: Any, value: Any, sent: Any, after: Any) -> None:
    """A text box around a bare value is undone like that of a field."""
    asked = question(value, codec=ParamsCodec(kind))
    assert edited(asked, sent) == {"value": after}
    assert edited(asked, {"value": sent}) == {"value": after}


def test_a_call_without_params_cannot_be_edited() -> None:
    """There is nothing to edit, so only the other decisions are offered."""
    asked = empty_question()
    assert "Edit is not allowed" in problem_of(asked, {"type": "edit", "params": {"a": 1}})
    assert offered(asked) == ("approve", "reject", "respond")
    for answer in ("approve", {"action": "retry", "revised_params": {}}):
        verdict = judge(answer, asked)
        assert isinstance(verdict, Accepted)
        assert (verdict.decision["type"], verdict.params) == ("approve", {})


def test_another_edit_keeps_the_recorded_types() -> None:
    """A value whose type only the types map knows is still of that type after another edit."""
    asked = question({"when": date(2026, 1, 1), "n": 1})
    verdict = judge({"type": "edit", "params": {"n": 2}}, asked)
    assert isinstance(verdict, Accepted)
    after = asked.codec.decode(verdict.params or {}, verdict.types)
    assert after == {"when": date(2026, 1, 1), "n": 2}


class Fragile(BaseModel):
    n: int = 1

    @field_validator("n")
    @classmethod
    def _broken(cls, n: int) -> int:
        if n > 5:
            raise RuntimeError("the validator is broken")
        return n


def test_a_broken_params_validator_asks_again() -> None:
    """An error of the caller's own validator is told, and does not end the thread."""
    problem = problem_of(question(Fragile()), {"type": "edit", "params": {"n": 6}})
    assert "the validator is broken" in problem


def test_a_broken_output_check_asks_again() -> None:
    """So is one of the output's check, while LangGraph's control flow passes through."""

    def broken(value: Any) -> Checked:
        raise RuntimeError("the check is broken")

    def interrupting(value: Any) -> Checked:
        raise GraphInterrupt

    answer = {"type": "respond", "output": 1}
    assert "the check is broken" in problem_of(question(check_output=broken), answer)
    with pytest.raises(GraphInterrupt):
        judge(answer, question(check_output=interrupting))


@pytest.mark.parametrize(
    ("output", "sent", "taken"),
    [
        (str, '{"a": 1}', '{"a": 1}'),
        (list[int], "[5]", [5]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (None, "5", "5"),
    ],
)
def test_output_text_is_read_as_json_only_where_text_is_not_valid(
    output: Any, sent: str, taken: Any
) -> None:
    """A text output stays text; over another type it is read as JSON if that is what fits."""
    verdict = judge({"type": "respond", "output": sent}, question(output=output))
    assert isinstance(verdict, Accepted), verdict
    assert verdict.decision["output"] == taken


def test_a_refused_output_given_as_text_names_its_missing_field() -> None:
    """The JSON in the text is what the person meant, so that is what the refusal is about."""
    problem = problem_of(question(), {"type": "respond", "output": '{"name": "Ada"}'})
    assert "/age: Field required" in problem


def test_an_output_no_checkpointer_keeps_is_refused() -> None:
    """A whole number beyond 64 bits would break the thread when its state is saved."""
    answer = {"type": "respond", "output": {"n": [2**70]}}
    assert "integers of 64 bits" in problem_of(question(output=None), answer)


def test_a_huge_answer_is_not_echoed() -> None:
    """A refusal quotes little of what came."""
    for answer in (
        "x" * 10**6,
        {"type": "edit", "params": {"x" * 10**6: 1}},
        {"type": "y" * 10**6},
    ):
        problem = problem_of(question(), answer)
        assert len(problem) <= 1_000
        assert "x" * 200 not in problem


@pytest.mark.parametrize(
    ("params", "changes", "why"),
    [
        (None, {"style": {"ton": "loud"}}, 'no field "style.ton". Did you mean `tone`?'),
        (None, {"style": {"weight": 1}}, 'no field "style.weight".'),
        ({"o": {"model": "x"}}, {"o": {"modle": "y"}}, 'no field "o.modle". Did you mean `model`?'),
        ({"o": {"p": {"model": "x"}}}, {"o": {"p": {"modle": 1}}}, 'no field "o.p.modle".'),
    ],
)
def test_an_unknown_field_inside_an_object_is_refused(params, changes, why) -> None:
    """Its type would pass over it, and the call would be paid again without the change."""
    verdict = judge({"type": "edit", "params": changes}, question(params))
    assert isinstance(verdict, Refused)
    assert why in verdict.problem


def test_an_object_that_takes_any_fields_may_gain_some() -> None:
    """One that is close to another only where that is sent as well."""
    asked = question({"o": {"model": "x"}})
    for inside in ({"seed": 1}, {"modle": "y", "model": "x"}):
        verdict = judge({"type": "edit", "params": {"o": inside}}, asked)
        assert isinstance(verdict, Accepted)
        assert verdict.params == {"o": {"model": "x", **inside}}


@pytest.mark.parametrize("name", ["params", "changes", "update", "modle"])
def test_changes_in_a_wrapper_are_refused(name: str) -> None:
    """Untyped params would get a field of that name, and the call would be paid unchanged."""
    asked = question({"model": "x", "seed": 1})
    problem = problem_of(asked, {"type": "edit", "params": {name: {"model": "y"}}})
    assert f"To change `model`, send it as a separate field, not inside `{name}`" in problem
    both = {name: {"model": "y"}, "model": "x"}
    assert edited(asked, both) == {"model": "x", "seed": 1, name: {"model": "y"}}
    assert edited(asked, {"style": {"tone": "loud"}})["style"] == {"tone": "loud"}
