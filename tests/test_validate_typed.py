"""Types: what is converted and told, what strict refuses, and where an issue points."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.errors import GraphInterrupt
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from graph_retry.validate import build_validator
from graph_retry.validate.plain import same


class Color(Enum):
    RED = "red"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    age: int
    toys: int | list[int] = 0


class Person(BaseModel):
    age: int = Field(alias="Age")
    height: float = 1.5
    born: date | None = None
    color: Color = Color.RED
    tags: set[str] = set()


@dataclass
class Point:
    x: int


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 0


def refuse(value: Any) -> Any:
    """Refuse any value."""
    raise ValueError("not this one")


COERCIONS = [
    pytest.param(int, "30", ['(whole value): "30" (str) → 30 (int)'], id="text-to-int"),
    pytest.param(int, 1.0, ["(whole value): 1.0 (float) → 1 (int)"], id="float-to-int"),
    pytest.param(int, True, ["(whole value): true (bool) → 1 (int)"], id="bool-to-int"),
    pytest.param(bool, "yes", ['(whole value): "yes" (str) → true (bool)'], id="text-to-bool"),
    pytest.param(date, 0, ['(whole value): 0 (int) → "1970-01-01" (date)'], id="number-to-date"),
    pytest.param(Person, {"Age": "30"}, ['/Age: "30" (str) → 30 (int)'], id="by-alias"),
    pytest.param(list[Point], [{"x": "1"}], ['/0/x: "1" (str) → 1 (int)'], id="dataclass"),
    pytest.param(dict[str, int], {"a/b~": "1"}, ['/a~1b~0: "1" (str) → 1 (int)'], id="escaped"),
    pytest.param(set[int], ["2", 1], ['/0: "2" (str) converted'], id="in-a-set"),
    pytest.param(
        list[Cat | Dog],
        [{"kind": "dog", "age": "3"}],
        ['/0/age: "3" (str) → 3 (int)'],
        id="in-a-union",
    ),
    pytest.param(
        Person, {"Age": "1", "born": "2024-01-02", "color": "red"}, None, id="beside-a-date"
    ),
]
NO_COERCIONS = [
    pytest.param(float, 1, id="int-for-float"),
    pytest.param(date, "2024-01-02", id="date"),
    pytest.param(Color, "red", id="enum"),
    pytest.param(Person, {"Age": 1, "tags": ["b", "a", "b"]}, id="defaults-and-set"),
    pytest.param(tuple[int, ...], [1, 2], id="tuple"),
    pytest.param(dict[int, int], {"1": 2}, id="int-keys"),
    pytest.param(int | str, "1", id="union"),
    pytest.param(Annotated[str, AfterValidator(str.strip)], " a ", id="own-validator"),
    pytest.param(Closed, Closed(a=1), id="instance"),
]


@pytest.mark.parametrize(("output", "value", "details"), COERCIONS)
def test_a_conversion_is_told_and_strict_refuses_it(output, value, details):
    """What pydantic converts is reported with its place; strict makes an issue of the same."""
    repairs = build_validator(output).check(value).repairs

    assert len(repairs) == 1
    assert details is None or [repair["detail"] for repair in repairs] == details
    assert {(r["kind"], r["grade"], r["position"]) for r in repairs} == {
        ("coerced", "coerced", None)
    }
    refused = build_validator(output, strict=True).check(value)
    assert refused.issues
    assert refused.repairs == []


@pytest.mark.parametrize(("output", "value"), NO_COERCIONS)
def test_what_json_must_spell_so_is_no_conversion(output, value):
    """Dates, enums, sets and defaults are not reported, and pass strict validation."""
    for strict in (False, True):
        checked = build_validator(output, strict=strict).check(value)
        assert (checked.issues, checked.repairs) == ([], [])


def test_a_python_value_is_converted_too():
    """A dict that is not plain JSON is validated as Python, and its conversions are told."""
    checked = build_validator(Person).check({"Age": "30", "born": date(2024, 1, 2)})
    assert [repair["detail"] for repair in checked.repairs] == ['/Age: "30" (str) → 30 (int)']


def test_many_conversions_are_bounded():
    """A long list of numbers in strings does not fill the ledger."""
    checked = build_validator(list[int]).check([str(number) for number in range(500)])
    assert checked.value == list(range(500))
    assert len(checked.repairs) == 100


Tagged = Annotated[Cat | Dog, Field(discriminator="kind")]
ISSUES = [
    pytest.param(int, "x", [("", "int_parsing", "int", '"x" (str)')], id="root"),
    pytest.param(Person, {}, [("/Age", "missing", "a value", None)], id="missing-by-alias"),
    pytest.param(Closed, {"b": 1}, [("/b", "extra_forbidden", None, "1 (int)")], id="extra"),
    pytest.param(
        dict[str, list[int]],
        {"a/b": [1, None]},
        [("/a~1b/1", "int_type", "int", "null")],
        id="escaped",
    ),
    pytest.param(
        dict[int, int], {"a": 1}, [("/a", "int_parsing", "int", '"a" (str)')], id="dict-key"
    ),
    pytest.param(
        list[Tagged],
        [{"kind": "dog", "dog": 1, "age": "x"}],
        [("/0/age", "int_parsing", "int", '"x" (str)')],
        id="union-tag-that-is-a-key-too",
    ),
    pytest.param(
        list[Tagged],
        [{"kind": "dog", "age": 1, "toys": ["x"]}],
        [
            ("/0/toys", "int_type", "int", '["x"] (list)'),
            ("/0/toys/0", "int_parsing", "int", '"x" (str)'),
        ],
        id="union-in-a-union",
    ),
    pytest.param(
        dict[str, Cat | int],
        {"int": {"kind": "cat"}},
        [
            ("/int/lives", "missing", "a value", None),
            ("/int", "int_type", "int", '{"kind": "cat"} (dict)'),
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
    pytest.param(
        Annotated[int, Field(ge=3)], 1, [("", "greater_than_equal", "ge 3", "1 (int)")], id="limit"
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
        [("/a", "int_parsing", "int", '"b!" (str)')],
        id="own-validator-changed-the-input",
    ),
]


@pytest.mark.parametrize(("output", "value", "expected"), ISSUES)
def test_an_issue_points_into_the_data(output, value, expected):
    """Path, code, expected and received say where and what, whatever pydantic's location is."""
    issues = build_validator(output).check(value).issues
    found = [(i["path"], i["code"], i["expected"], i["received"]) for i in issues]
    assert found == expected


def test_a_union_issue_names_the_member():
    """Two members of a union want different things: each message says whose it is."""
    issues = build_validator(Cat | Dog).check({"kind": "cat"}).issues
    assert [issue["message"] for issue in issues] == [
        "Field required (as Cat)",
        "Input should be 'dog' (as Dog)",
        "Field required (as Dog)",
    ]


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


class Tree(BaseModel):
    child: "Tree | None" = None


@pytest.mark.parametrize(("depth", "ok"), [(100, True), (200, False), (100_000, False)])
@pytest.mark.parametrize("output", [Tree, Any, {}, lambda value: value])
def test_deep_data_is_refused_and_never_crashes(output, depth, ok):
    """Nesting beyond the limit is one issue, whatever the validator."""
    value = None
    for _ in range(depth + 1):
        value = {"child": value}
    issues = build_validator(output).check(value).issues
    assert [issue["code"] for issue in issues] == ([] if ok else ["too_deep"])


def test_a_value_that_holds_itself_is_refused():
    """A cycle is nesting without end."""
    value: list[Any] = []
    value.append(value)
    assert build_validator(Any).check(value).issues[0]["code"] == "too_deep"


def test_an_error_in_the_types_own_validator_is_an_issue():
    """A bug in a field validator fails the attempt with its name, as in a plain function."""

    def buggy(value: int) -> int:
        return {}["gone"]

    issues = build_validator(Annotated[int, AfterValidator(buggy)]).check(1).issues
    assert [issue["code"] for issue in issues] == ["unexpected_error"]
    assert issues[0]["message"] == "KeyError: 'gone'"


def test_control_flow_passes_through_a_types_own_validator():
    """A field validator that asks a person interrupts the graph."""

    def ask(value: int) -> int:
        raise GraphInterrupt

    with pytest.raises(GraphInterrupt):
        build_validator(Annotated[int, AfterValidator(ask)]).check(1)
