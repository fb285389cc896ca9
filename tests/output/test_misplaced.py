"""A mistake of a whole answer is one issue: the schema, a frame, keys in the wrong object."""

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from graph_retry import AttemptsExhausted, retry_llm_call
from graph_retry._core.output.misplaced import moved


class Arguments(BaseModel, extra="forbid"):
    """The inner object."""

    city: str
    unit: Literal["celsius", "fahrenheit"]
    days: Annotated[int, Field(le=7)]


class Call(BaseModel, extra="forbid"):
    """An object with an object in it."""

    tool: str
    arguments: Arguments


class Open(BaseModel):
    """The same, where unknown keys are ignored."""

    tool: str
    arguments: Arguments


class Many(BaseModel):
    """The same, in a list."""

    calls: list[Call]


class Either(BaseModel):
    """An object whose inner object is a union: where a key belongs is not known."""

    tool: str
    arguments: Arguments | Call


ARGUMENTS: dict[str, Any] = {"city": "Oslo", "unit": "celsius", "days": 3}
SCHEMA = TypeAdapter(Arguments).json_schema()
MOVE = "`city`, `unit`, `days` belong in /arguments: move them there"
ABSENT = [("/city", "missing"), ("/unit", "missing"), ("/days", "missing")]
THE_SCHEMA = [("", "schema_returned")]
INSIDE = [("/arguments", "misplaced")]
ROWS: list[tuple[Any, Any, list[tuple[str, str]]]] = [
    # the schema: whole, its fields alone, in other words
    (Arguments, SCHEMA, THE_SCHEMA),
    (Arguments, SCHEMA["properties"], THE_SCHEMA),
    (
        Arguments,
        {"type": "object", "properties": {"city": {"type": "string"}}},
        [("", "schema_returned")],
    ),
    (Call, TypeAdapter(Call).json_schema(), THE_SCHEMA),
    (
        Arguments,
        {"properties": {"unit": {"enum": ["celsius"]}, "days": {"type": "integer"}}},
        [("", "schema_returned")],
    ),
    # a frame around a value that is refused for its own faults
    (
        Arguments,
        {"properties": ARGUMENTS | {"days": 9}},
        [("/properties", "framed"), ("/properties/days", "less_than_equal")],
    ),
    (
        Arguments,
        {"type": "object", "properties": ARGUMENTS | {"unit": "K"}, "required": ["city"]},
        [("/properties", "framed"), ("/properties/unit", "literal_error")],
    ),
    (
        Arguments,
        {"name": "f", "arguments": {"city": "Oslo"}},
        [("/arguments", "framed"), ("/arguments/unit", "missing"), ("/arguments/days", "missing")],
    ),
    (
        Call,
        {"answer": {"tool": "f", **ARGUMENTS}},
        [("/answer", "framed"), ("/answer/arguments", "misplaced")],
    ),
    # keys in the wrong object
    (Call, {"tool": "f", **ARGUMENTS}, INSIDE),
    (Open, {"tool": "f", **ARGUMENTS}, INSIDE),
    (Call, {"arguments": ARGUMENTS | {"tool": "f"}}, [("", "misplaced")]),
    (
        Call,
        {"tool": "f", "days": 3, "arguments": {"city": "Oslo", "unit": "celsius"}},
        [("/arguments", "misplaced")],
    ),
    (
        Many,
        {"calls": [{"tool": "f", **ARGUMENTS}, {"tool": "g", "arguments": ARGUMENTS}]},
        [("/calls/0/arguments", "misplaced")],
    ),
    (
        Call,
        {"tool": "f", "why": "x", **ARGUMENTS},
        [("/arguments", "misplaced"), ("/why", "extra_forbidden")],
    ),
    # nothing of it: the issues stay as they were
    (Call, {"tool": "f", "city": 4}, [("/arguments", "missing"), ("/city", "extra_forbidden")]),
    (Either, {"tool": "f", **ARGUMENTS}, [("/arguments", "missing")]),
    (
        Arguments,
        {"city": {"type": "Oslo"}, "unit": "celsius", "days": 1},
        [("/city", "string_type")],
    ),
    (Arguments, {}, ABSENT),
    (
        Arguments,
        {"wrong": {"place": "Oslo"}},
        [
            ("/city", "missing"),
            ("/unit", "missing"),
            ("/days", "missing"),
            ("/wrong", "extra_forbidden"),
        ],
    ),
]  # fmt: skip


def refused(output: Any, value: Any) -> Any:
    """Return the issues of one answer."""
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(lambda _: json.dumps(value), "?", output=output, review=False)
    return caught.value.attempts[-1]["issues"]


@pytest.mark.parametrize(("output", "value", "issues"), ROWS)
def test_a_mistake_of_the_whole_answer_is_one_issue(output, value, issues):
    """What is not such a mistake keeps the issues of validation."""
    assert [(one["path"], one["code"]) for one in refused(output, value)] == issues


@pytest.mark.parametrize(("output", "value", "issues"), ROWS[:13:4])
def test_a_json_schema_as_output_has_the_same_issues(output, value, issues):
    """The facts come from the schema, so that it does not matter which validator judged."""
    told = refused(TypeAdapter(output).json_schema(), value)
    assert told[0]["path"] == issues[0][0]
    assert told[0]["code"] == issues[0][1]


def test_the_issue_names_the_keys_and_their_place():
    """A person and a model read one sentence in place of thirteen."""
    (told,) = refused(Call, {"tool": "f", **ARGUMENTS})
    assert (told["message"], told["received"]) == (
        MOVE,
        "`city`, `unit`, `days` in the outermost object",
    )


@pytest.mark.parametrize(
    ("output", "value"), [row[:2] for row in ROWS if row[2][0][1] == "misplaced"]
)
def test_moved_keys_stand_where_the_issue_says(output, value):
    """A moved value keeps every key and value, and the given one is not changed."""
    before = json.dumps(value)
    found = moved(value, TypeAdapter(output).json_schema())
    assert json.dumps(value) == before
    found.pop("why", None)
    TypeAdapter(output).validate_python(found)
