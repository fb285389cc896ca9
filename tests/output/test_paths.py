"""Where an issue of a typed value points, and what it says."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Annotated, Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core.core_schema import ErrorType

from graph_retry._core.ground.wording import expected_by
from graph_retry.output import build_validator
from tests.output.validating import same


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    age: int
    toys: int | list[int] = 0


class Person(BaseModel):
    age: int = Field(alias="Age")


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 0


def refuse(value: Any) -> Any:
    """Refuse any value."""
    raise ValueError("not this one")


Tagged = Annotated[Cat | Dog, Field(discriminator="kind")]
ISSUES = [
    pytest.param(int, "x", [("", "int_parsing", "a whole number", '"x" (str)')], id="root"),
    pytest.param(Person, {}, [("/Age", "missing", "a value", "no keys")], id="missing-by-alias"),
    pytest.param(Closed, {"b": 1}, [("/b", "extra_forbidden", None, "1 (int)")], id="extra"),
    pytest.param(
        dict[str, list[int]],
        {"a/b": [1, None]},
        [("/a~1b/1", "int_type", "a whole number", "null")],
        id="escaped",
    ),
    pytest.param(
        dict[int, int],
        {"a": 1},
        [("/a", "int_parsing", "a whole number", '"a" (str)')],
        id="dict-key",
    ),
    pytest.param(
        list[Tagged],
        [{"kind": "dog", "dog": 1, "age": "x"}],
        [("/0/age", "int_parsing", "a whole number", '"x" (str)')],
        id="union-tag-that-is-a-key-too",
    ),
    pytest.param(
        list[Tagged],
        [{"kind": "dog", "age": 1, "toys": ["x"]}],
        [
            ("/0/toys", "int_type", "a whole number", '["x"] (list)'),
            ("/0/toys/0", "int_parsing", "a whole number", '"x" (str)'),
        ],
        id="union-in-a-union",
    ),
    pytest.param(
        dict[str, Cat | int],
        {"int": {"kind": "cat"}},
        [
            ("/int/lives", "missing", "a value", "the keys `kind`"),
            ("/int", "int_type", "a whole number", '{"kind": "cat"} (dict)'),
        ],
        id="member-named-like-a-key",
    ),
    pytest.param(
        Tagged,
        {"kind": "cow"},
        [("", "union_tag_invalid", "'cat', 'dog'", '{"kind": "cow"} (dict)')],
        id="unknown-tag",
    ),
    pytest.param(
        Literal["a", "b"], "c", [("", "literal_error", "'a' or 'b'", '"c" (str)')], id="literal"
    ),
    pytest.param(Closed, 5, [("", "model_type", "an object", "5 (int)")], id="not-a-model"),
    pytest.param(
        Annotated[str, Field(min_length=2)],
        "a",
        [("", "string_too_short", "at least 2 characters", '"a" (1 character)')],
        id="length",
    ),
    pytest.param(
        Annotated[list[int], Field(min_length=2)],
        [1],
        [("", "too_short", None, "[1] (list)")],
        id="list-length",
    ),
    pytest.param(
        Annotated[int, Field(ge=3)], 1, [("", "greater_than_equal", None, "1 (int)")], id="limit"
    ),
    pytest.param(
        list[Annotated[str, AfterValidator(refuse)]],
        ["a"],
        [("/0", "value_error", None, '"a" (str)')],
        id="own-validator",
    ),
    pytest.param(
        dict[str, Annotated[int, BeforeValidator(lambda value: value + "!")]],
        {"a": "b"},
        [("/a", "int_parsing", "a whole number", '"b!" (str)')],
        id="own-validator-changed-the-input",
    ),
]


@pytest.mark.parametrize(("output", "value", "expected"), ISSUES)
def test_an_issue_points_into_the_data(output, value, expected):
    """Path, code, expected and received say where and what, whatever pydantic's location is."""
    issues = build_validator(output).check(value).issues
    found = [(i["path"], i["code"], i["expected"], i["received"]) for i in issues]
    assert found == expected


TYPE_CODES = [code for code in get_args(ErrorType) if code.endswith(("_type", "_parsing"))]


@pytest.mark.parametrize("code", TYPE_CODES)
def test_what_pydantic_expects_is_told_in_plain_words(code):
    """No internal name, such as `date_from_datetime`, is shown to a person or a model."""
    words = expected_by(code)
    assert words is not None
    assert words not in (code.rpartition("_")[0], code.rpartition("_")[0].replace("_", " "))


@pytest.mark.parametrize(
    ("output", "value", "words"),
    [
        (date, "3 March", "a date (YYYY-MM-DD)"),
        (date, "2030-01-01T10:00:00", "a date (YYYY-MM-DD)"),
        (timedelta, "soon", "a duration, such as PT1H30M"),
        (bool, "perhaps", "true or false"),
        (int, 1.5, "a whole number"),
    ],
)
def test_an_issue_expects_what_a_person_can_write(output, value, words):
    """Dates and the like come with their notation."""
    (issue,) = build_validator(output).check(value).issues
    assert issue["expected"] == words


def resolve(path: str, value: Any) -> Iterator[Any]:
    """Yield what each part of a JSON Pointer leads to, as far as it leads."""
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
        yield value


KEYS = st.sampled_from(["kind", "lives", "age", "toys", "int", "Cat", "dog", "0", "a/b", "~"])
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["cat", "dog", "1", "x"])
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**64 - 1)
TREES = st.recursive(
    LEAVES, lambda tree: st.lists(tree, max_size=3) | st.dictionaries(KEYS, tree, max_size=4)
)


@given(value=TREES)
def test_every_path_leads_somewhere(value):
    """Each issue's path exists in the data, or its last part is what is missing there."""
    output = dict[str, list[Cat | Dog | int]] | list[Tagged | dict[str, Dog]]
    for issue in build_validator(output).check(value).issues:
        parts = issue["path"].count("/")
        try:
            found = len(list(resolve(issue["path"], value)))
        except (KeyError, IndexError):
            assert issue["code"] == "missing"
            found = len(list(resolve(issue["path"].rpartition("/")[0], value))) + 1
        assert found == parts


@given(value=TREES | st.lists(NUMBERS | st.text()))
def test_any_json_is_kept_as_it_is(value):
    """Where anything is wanted, nothing is changed and nothing is reported."""
    checked = build_validator(Any).check(value)
    assert same(checked.value, value)
    assert same(checked.jsonable, value)
    assert (checked.issues, checked.repairs) == ([], [])
