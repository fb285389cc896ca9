"""The response schema takes exactly the canonical good answers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel, Field

from graph_retry import AnswerRefused, edit, pending_reviews, resume, retry_llm_call
from graph_retry._core.params.patch import Encoded
from graph_retry._core.review.clients.payload import response_schema
from graph_retry._core.review.review_record import Question
from tests.loops import thread
from tests.review.questions import Params, question

RECORDED = json.loads(Path(__file__).with_name("recorded_answers.json").read_text("utf-8"))


class Style(BaseModel):
    """Has the name of a nested model of the params, and other fields."""

    children: list["Style"] = []
    weight: int


LINKED = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"next": {"$ref": "#"}, "n": {"$ref": "#/definitions/n"}},
    "required": ["n"],
    "definitions": {"n": {"type": "integer"}},
}


ANYTHING = replace(
    question(),
    output={"name": "Ada"},
    takes_output=True,
    with_comment=lambda message: Encoded({"prompt": message}, {}),
)
"""A question to which every decision is possible."""


def fits(answer: Any, asked: Question) -> bool:
    """Tell whether the question's schema takes an answer."""
    schema = json.loads(json.dumps(response_schema(asked)))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema).is_valid(answer)


@pytest.mark.parametrize("client", RECORDED)
def test_every_canonical_decision_fits(client: str) -> None:
    """Whatever a client sends, the decision it stands for fits the schema."""
    assert fits(RECORDED[client][1], question())


@pytest.mark.parametrize(
    "answer",
    [
        {"type": "approve", "attempt": 2, "review_id": "r2", "decision_id": "d", "by": "ada"},
        {"type": "edit", "params": {}},
        {"type": "edit", "params": {"style": {"tone": "loud"}, "seed": None, "due": "2026-01-31"}},
        {"type": "reject", "message": "no"},
        {"type": "respond", "output": {"name": "Ada", "age": 36}},
        {"type": "comment", "message": "he is older"},
        {"type": "accept", "message": "it is so"},
        {"type": "accept"},
    ],
)
def test_good_answers_fit(answer: dict[str, Any]) -> None:
    """The canonical forms are valid, an edit with any part of the params."""
    assert fits(answer, ANYTHING)


@pytest.mark.parametrize(
    "answer",
    [
        "approve",
        {},
        {"type": "retry"},
        {"type": "approve", "params": {}},
        {"type": "approve", "attempt": 1},
        {"type": "approve", "review_id": "r1"},
        {"type": "edit"},
        {"type": "edit", "params": []},
        {"type": "edit", "params": {"temprature": 0}},
        {"type": "edit", "params": {"temperature": "warm"}},
        {"type": "edit", "params": {"style": {"length": 5000}}},
        {"type": "edit", "params": {}, "output": 1},
        {"type": "reject", "message": 1},
        {"type": "comment"},
        {"type": "comment", "message": ""},
        {"type": "accept", "output": 1},
        {"type": "respond"},
        {"type": "respond", "output": {"name": "Ada"}},
    ],
)
def test_bad_answers_do_not_fit(answer: Any) -> None:
    """Typos, wrong types, missing parts and answers to another attempt are invalid."""
    assert not fits(answer, ANYTHING)


@pytest.mark.parametrize("kind", ["approve", "edit", "reject", "respond", "comment", "accept"])
def test_only_allowed_decisions_are_in_the_schema(kind: str) -> None:
    """The schema has one branch for each decision that is offered, and no more."""
    schema = response_schema(replace(ANYTHING, allowed=(kind,)))
    assert [branch["properties"]["type"]["const"] for branch in schema["oneOf"]] == [kind]


@pytest.mark.parametrize("params", [None, {"prompt": "x", "temperature": 1.0}])
def test_locked_fields_are_left_out(params: Any) -> None:
    """A locked field cannot be sent, in typed params or in a plain dict."""
    asked = question(params, locked=("prompt",))
    assert not fits({"type": "edit", "params": {"prompt": "y"}}, asked)
    assert fits({"type": "edit", "params": {"temperature": 0.5}}, asked)


def test_untyped_params_may_gain_fields() -> None:
    """A plain dict is open, so the schema is too."""
    assert fits({"type": "edit", "params": {"new": 1}}, question({"n": 1}))


def test_references_resolve_in_both_halves() -> None:
    """Definitions of params and output that share a name do not mix."""
    asked = question(output=Style)
    tree = {"weight": 1, "children": [{"weight": 2, "children": []}]}
    assert fits({"type": "respond", "output": tree}, asked)
    assert not fits({"type": "respond", "output": {"weight": 1, "children": [{}]}}, asked)
    assert fits({"type": "edit", "params": {"style": {"tone": "x"}}}, asked)
    assert not fits({"type": "edit", "params": {"style": {"tone": 1}}}, asked)


@pytest.mark.parametrize("identity", [{}, {"$id": "https://example.com/linked"}])
def test_references_to_the_root_of_a_schema_resolve(identity: dict[str, str]) -> None:
    """A caller's schema that refers to itself keeps doing so where it is embedded."""
    asked = question(output={**LINKED, **identity})
    assert fits({"type": "respond", "output": {"n": 1, "next": {"n": 2}}}, asked)
    assert not fits({"type": "respond", "output": {"n": 1, "next": {"n": "x"}}}, asked)


def test_the_schema_of_params_is_that_of_their_type() -> None:
    """Every field's own schema is there, and none is required."""
    params = response_schema(question())["$defs"]["params"]
    assert params["properties"].keys() == Params.model_fields.keys()
    assert "required" not in params


class Wide(BaseModel):
    """Has limits and defaults that a checkpoint cannot hold."""

    prompt: str = "q"
    id: Annotated[int, Field(lt=2**64)] = 0
    ids: list[Annotated[int, Field(ge=-(2**70))] | None] = [2**64]
    ratio: Annotated[float, Field(le=1)] = float("-inf")
    kind: Literal[1, 2**65] = 1
    code: Annotated[str, Field(pattern="^[^\0]*$")] = ""


def test_limits_beyond_64_bits_reach_a_person() -> None:
    """The question leaves out what graph state cannot hold; the validation has every limit."""
    saver = InMemorySaver()
    answers = iter(["none", f'{{"id": {2**64}}}', '{"id": 5}'])

    @entrypoint(checkpointer=saver)
    def graph(_: str) -> int:
        return retry_llm_call(lambda _: next(answers), Wide(), output=Wide).id

    asked = graph.invoke("x", thread())["__interrupt__"][0].value
    shown = asked["response_schema"]["$defs"]
    for fields in (shown["params"]["properties"], shown["output"]["properties"]):
        assert fields["id"] == {"default": 0, "title": "Id", "type": "integer"}
        assert fields["ids"]["items"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
        assert fields["ratio"] == {"maximum": 1, "title": "Ratio", "type": "number"}
        assert "enum" not in fields["kind"]
        assert fields["code"]["pattern"] == "^[^\0]*$"
    json.dumps(shown, allow_nan=False)
    with pytest.raises(AnswerRefused, match="less than 18446744073709551616"):
        resume(graph, thread(), edit(id=2**64))
    resume(graph, thread(), edit(id=2**64 - 1))
    assert pending_reviews(graph, thread())[0].issues[0]["path"] == "/id"
    assert resume(graph, thread(), edit(prompt="z")) == 5
