"""A value inside a wrapper, and values of which validation would keep nothing."""

import dataclasses
import json
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, model_validator
from typing_extensions import TypedDict

from graph_retry import AttemptsExhausted, Completion, retry_llm_call
from graph_retry._core.output.types.core_schema import may_merge_keys
from graph_retry._core.output.types.type_validator import TypedValidator
from graph_retry._core.output.unwrapped import WRAPPERS
from graph_retry.output import build_validator


class Person(BaseModel):
    """A type with a field that must be there."""

    name: str
    age: int | None = None


class Grade(BaseModel):
    """A type whose fields all have defaults: anything would fit it."""

    score: float = 0.0
    note: str = ""


@dataclasses.dataclass
class Point:
    """The same as a dataclass."""

    x: int = 0
    y: int = 0


class Words(TypedDict, total=False):
    """The same as a typed dict."""

    text: str


class Read(BaseModel):
    """A branch of a union, named by its command."""

    command: Literal["read"]
    path: str


class Step(BaseModel):
    """A type with objects and lists in its fields."""

    op: Annotated[Read, Field()] | None = None
    tags: list[str] = []


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
VALUES = {Person: {"name": "Ada", "age": 36}, Grade: {"score": 0.9, "note": "good"}}
CASES = [(Person, Person), (Person, "schema"), (Grade, Grade)]


def read(value, output):
    """Return the output and the kinds and details of the repairs of one answer."""
    records = []
    text = value if isinstance(value, str) else json.dumps(value)
    made = retry_llm_call(
        lambda _: text, {}, output=output, review=False, max_attempts=1, on_attempt=records.append
    )
    dumped = made.model_dump() if isinstance(made, BaseModel) else made
    return dumped, {one["kind"]: one["detail"] for one in records[-1]["repairs"]}


def refused(value, output):
    """Return the issues of an answer that is refused."""
    with pytest.raises(AttemptsExhausted) as caught:
        read(value, output)
    return "; ".join(one["message"] for one in caught.value.attempts[-1]["issues"])


def members():
    """Make a member of each row, of each key inside it, and with one, several and all others."""
    yield "answer", lambda inner: {"answer": inner}, "/answer"
    yield "two keys", lambda inner: {"data": {"result": inner}}, "/data/result"
    for row in WRAPPERS:
        for key in sorted(row.inside):
            for count in (0, 1, 2, len(row.beside)):
                beside = dict.fromkeys(sorted(row.beside)[:count], "x")
                yield f"{key} of {count}", lambda inner, k=key, b=beside: {**b, k: inner}, f"/{key}"


@pytest.mark.parametrize(("kind", "output"), CASES)
@pytest.mark.parametrize(("_", "wrap", "path"), [*members()], ids=lambda one: str(one)[:20])
def test_a_value_in_a_wrapper_is_the_value(kind, output, _, wrap, path):
    """Nothing else is in a wrapper, so nothing is lost, and the ledger tells the place."""
    wanted = SCHEMA if output == "schema" else output
    for inner in (VALUES[kind], json.dumps(VALUES[kind])):
        if output == "schema" and "name" in wrap(inner):
            continue  # A schema allows other keys, so the whole fits, and nothing is lost.
        made, repairs = read(wrap(inner), wanted)
        assert made == VALUES[kind]
        assert repairs["unwrapped"].startswith("unwrapped ")
        assert path in repairs["unwrapped"]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: {"answer": inner, "confidence": 0.5},
        lambda inner: {"a": inner, "b": inner},
        lambda inner: {"name": ["x"], "arguments": {"given": inner, "more": 1}},
        lambda inner: {"answer": {}},
        lambda inner: {"answer": str(inner)},
        lambda inner: {"answer": [inner, inner]},
    ],
)
def test_a_value_with_others_beside_it_is_asked(kind, wrap):
    """Something would be lost, or there are two answers."""
    assert refused(wrap(VALUES[kind]), kind)


def test_a_wrapper_that_is_wanted_stays():
    """The value that came is the answer if it fits without a loss."""
    call = {"name": "add", "arguments": {"a": 1}}
    assert read(call, dict) == (call, {})
    assert read({"answer": {"name": "Ada"}}, {"type": "object"})[0] == {"answer": {"name": "Ada"}}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"tags": '["a", "b"]'}, ("tags", ["a", "b"])),
        ({"tags": "[]"}, ("tags", [])),
        ({"op": '{"command": "read", "path": "/a"}'}, ("op", {"command": "read", "path": "/a"})),
    ],
)
def test_json_in_a_text_is_read_where_an_object_or_list_is_wanted(value, field):
    """Some models write the arguments of a call as text, field by field."""
    made, repairs = read(value, Step)
    assert made[field[0]] == field[1]
    assert repairs["unwrapped"] == f"/{field[0]}: JSON inside a JSON string"


@pytest.mark.parametrize("text", ["a, b", "[a, b]", '["a"', '{"a": 1}', r'["C:\Dev"]'])
def test_other_text_in_such_a_field_is_asked(text):
    """It is no JSON, or not what the field wants."""
    assert refused({"tags": text}, Step)


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (Grade, {"points": 0.9}),
        (Point, {"a": 1}),
        (Words, {"words": "x"}),
        (list[Grade], [{"score": 1}, {"points": 0.9}]),
        (dict[str, Grade], {"x": {"points": 0.9}}),
        (Person | Grade, {"points": 0.9}),
    ],
)
def test_a_value_of_which_no_key_is_known_is_asked(output, value):
    """The defaults alone would look like an answer."""
    issues = build_validator(output).check(value).issues
    assert [one["code"] for one in issues] == ["unknown_keys"]
    assert issues[0]["message"].startswith("none of the keys `")


def test_no_keys_and_keys_that_a_validator_reads_are_no_unknown_keys():
    """An empty object means the defaults, and a validator may have read other names."""

    class Renamed(Grade):
        @model_validator(mode="before")
        @classmethod
        def rename(cls, value):
            return {"score": value["points"]} if "points" in value else value

    assert build_validator(Grade).check({}).ok
    assert build_validator(Grade).check({"score": 1.0, "extra": 2}).ok
    assert build_validator(Renamed).check({"points": 0.5}).value.score == 0.5


@pytest.mark.parametrize(
    ("output", "may_merge"),
    [(list[Person], False), (dict[str, int], False), (dict[int, str], True), (Grade, False)],
)
def test_keys_that_cannot_merge_are_not_compared(output, may_merge):
    """The comparison took most of the time of a valid answer of many objects."""
    schema = TypedValidator(output, strict=False)._adapter.core_schema
    assert may_merge_keys(schema) is may_merge


@pytest.mark.parametrize(
    "text",
    [
        "5</arg_value>",
        '</antml parameter>\n<parameter name="surname">',
        "ls</parameter>\n</invoke>",
        'x\n<parameter name="y">',
    ],
)
def test_a_text_with_a_mark_of_a_call_is_asked(text):
    """It is a piece of an answer that was cut at the wrong place."""
    assert "a mark of a call protocol" in refused({"name": text}, Person)
    assert "a mark of a call protocol" in refused({"name": "x", "tags": [text]}, dict)


@pytest.mark.parametrize(
    "text", ["<parameter name='a'>1</parameter>", "a </b> c", "Use </parameter> to close it."]
)
def test_markup_that_is_whole_is_text(text):
    """Code and documents have such elements."""
    assert read({"name": text}, Person)[0]["name"] == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The answer is empty."),
        ("  \n", "The answer is empty."),
        ("Hello", "There is no JSON document in the text."),
        ("<a><name>Ada</name></a>", "The text is XML, and has no JSON document."),
        ('f(name="Ada")', "The text is a call as in Python, and has no JSON document."),
        ('{"a": 1e400}', "A number is out of the range of floats."),
    ],
)
def test_an_unreadable_answer_is_told_by_its_cause(text, message):
    """With the stop reason of the model, if the client gave one."""
    assert refused(text, Person) == message
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(
            lambda _: Completion(text, finish_reason="stop"), {}, output=Person, review=False
        )
    failure = caught.value.attempts[-1]["failure"]["message"]
    stopped = " The model stopped with `stop`." if "1e400" not in text else ""
    assert failure == message + stopped
