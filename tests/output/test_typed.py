"""Types: what is converted and told, and what is refused without a crash."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from langgraph.errors import GraphInterrupt
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    create_model,
)
from typing_extensions import TypedDict

from graph_retry import retry_llm_call
from graph_retry.output import build_validator


class Color(Enum):
    RED = "red"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    age: int


class Person(BaseModel):
    age: int = Field(alias="Age")
    born: date | None = None
    color: Color = Color.RED
    tags: set[str] = set()


@dataclass
class Point:
    x: int


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int = 0


COERCIONS = [
    pytest.param(int, "30", ['(whole value): "30" (str) → 30 (int)'], id="text-to-int"),
    pytest.param(int, 1.0, ["(whole value): 1.0 (float) → 1 (int)"], id="float-to-int"),
    pytest.param(bool, "yes", ['(whole value): "yes" (str) → true (bool)'], id="text-to-bool"),
    pytest.param(Person, {"Age": "30"}, ['/Age: "30" (str) → 30 (int)'], id="by-alias"),
    pytest.param(list[Point], [{"x": "1"}], ['/0/x: "1" (str) → 1 (int)'], id="dataclass"),
    pytest.param(dict[str, int], {"a/b~": "1"}, ['/a~1b~0: "1" (str) → 1 (int)'], id="escaped"),
    pytest.param(
        dict[str, Cat | int],
        {"a": {"kind": "cat", "lives": "7"}},
        ['/a/lives: "7" (str) → 7 (int)'],
        id="in-a-member-of-a-union",
    ),
    pytest.param(int | float, "1", ['(whole value): "1" (str) → 1 (int)'], id="two-members"),
    pytest.param(set[int], ["2", 1], ["(whole value): converted"], id="in-a-set"),
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


@pytest.mark.parametrize(
    ("output", "value", "path"),
    [
        (int, True, ""),
        (float | None, False, ""),
        (dict[str, float], {"a": True}, "/a"),
        (date, 0, ""),
        (list[datetime], ["2024-01-02T00:00:00", 1741132800], "/1"),
        (list[datetime], [1741132800.5], "/0"),
        (date, "1741132800", ""),
        (datetime, "20250702", ""),
        (dict[str, datetime | None], {"a": "2025-07-02", "b": "2025"}, "/b"),
        (datetime | str, "2025", ""),
        (datetime | int, "2025", ""),
        (tuple[datetime, int], ["2025", 1], "/0"),
        (time, 1430, ""),
    ],
)
def test_a_conversion_that_guesses_is_an_issue(output, value, path):
    """A boolean is no amount, and a number does not tell the unit of its time."""
    checked = build_validator(output).check(value)
    assert [(one["path"], one["code"]) for one in checked.issues] == [(path, "guessed")]
    assert checked.value is None
    assert build_validator(output, strict=True).check(value).issues


def test_what_the_type_itself_converts_is_no_guess():
    """A user's own validator, or a branch of a union, says what the value means."""
    assert build_validator(Annotated[int, BeforeValidator(int)]).check(True).value == 1
    assert build_validator(int | bool).check(True).value is True
    assert build_validator(timedelta).check(5).value == timedelta(seconds=5)
    day = Annotated[datetime, BeforeValidator(lambda text: datetime.strptime(text, "%Y%m%d"))]  # noqa: DTZ007
    moment = Annotated[
        datetime, BeforeValidator(lambda text: datetime.fromtimestamp(int(text), UTC))
    ]
    assert build_validator(day).check("20250702").value == datetime(2025, 7, 2)  # noqa: DTZ001
    assert build_validator(moment).check("0").value == datetime(1970, 1, 1, tzinfo=UTC)


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


class Tree(BaseModel):
    child: "Tree | None" = None


@pytest.mark.parametrize(("depth", "ok"), [(100, True), (200, False), (100_000, False)])
@pytest.mark.parametrize("output", [Tree, Any, {}, lambda value: value])
def test_deep_data_is_refused_and_never_crashes(output, depth, ok):
    """Nesting beyond the limit is one issue, whatever the validator."""
    value = None
    for _ in range(depth + 1):
        value = {"child": value}
    assert len(build_validator(output).check(value).issues) == (0 if ok else 1)


def test_a_value_that_holds_itself_is_refused():
    """A cycle is nesting without end."""
    value: list[Any] = []
    value.append(value)
    assert len(build_validator(Any).check(value).issues) == 1


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


Lower = Annotated[str, StringConstraints(to_lower=True)]


class Headers(BaseModel):
    model_config = ConfigDict(str_to_lower=True)
    values: dict[str, int]


class Row(TypedDict):
    a: int


def without_zeros(values: dict[str, int]) -> dict[str, int]:
    """Leave out what is zero, as a validator of one's own may."""
    return {key: number for key, number in values.items() if number}


MERGED_KEYS = [
    pytest.param(dict[Lower, int], {"a": 1, "A": 2}, "", id="second-spelling-last"),
    pytest.param(dict[Lower, int], {"A": 2, "a": 1}, "", id="second-spelling-first"),
    pytest.param(dict[int, str], {"1": "a", "+1": "b"}, "", id="numbers"),
    pytest.param(Headers, {"values": {"b": 1, "B": 2, "c": 3}}, "/values", id="config-of-model"),
    pytest.param(dict[Lower, dict[Lower, int]], {"A": {"x": 1, "X": 2}}, "/A", id="renamed-parent"),
    pytest.param(list[dict[Lower, int]], [{"a": 1}, {"a": 1, "A": 1}], "/1", id="equal-values"),
]
KEPT_KEYS = [
    pytest.param(dict[Lower, int], {"A": 1, "B": 2}, {"a": 1, "b": 2}, [], id="renamed"),
    pytest.param(Row, {"a": 1, "b": 2}, {"a": 1}, ["/b"], id="typed-dict"),
    pytest.param(
        Annotated[dict[Lower, int], AfterValidator(without_zeros)],
        {"a": 1, "b": 0},
        {"a": 1},
        ["/b"],
        id="filtered",
    ),
]


@pytest.mark.parametrize(("output", "value", "path"), MERGED_KEYS)
def test_two_keys_that_validation_makes_one_are_an_issue(output, value, path):
    """Where two keys are read as one, a value would be lost: no output is made of it."""
    issues = build_validator(output).check(value).issues
    assert [(one["path"], one["code"]) for one in issues] == [(path, "merged_keys")]


@pytest.mark.parametrize(("output", "value", "kept", "left_out"), KEPT_KEYS)
def test_keys_that_are_renamed_or_left_out_are_no_issue(output, value, kept, left_out):
    """A key that is only written otherwise is not told as lost; one that is left out is told."""
    checked = build_validator(output).check(value)
    assert (checked.value, checked.issues) == (kept, [])
    assert [repair["detail"].partition(":")[0] for repair in checked.repairs] == left_out


class Either(BaseModel):
    size: int = Field(validation_alias=AliasChoices("size", "length", AliasPath("box", 0)))


@pytest.mark.parametrize(
    ("value", "left_out"),
    [
        ({"length": 1}, []),
        ({"length": 1, "size": 1, "box": [1]}, []),
        (
            {"length": 1, "size": 2},
            ["/length: 1 (int) was left out: the same field was read from `size`"],
        ),
    ],
)
def test_a_second_spelling_of_a_field_is_told_where_it_disagrees(value, left_out):
    """Of two aliases of one field only one is read: the other one is not lost silently."""
    repairs = build_validator(Either).check(value).repairs
    assert [repair["detail"] for repair in repairs] == left_out


@pytest.mark.parametrize(
    ("output", "spelling", "is_told"),
    [
        (datetime, "2024-01-01T00:00:00.123456789Z", True),
        (datetime, "2024-01-01T00:00:00.123456000Z", False),
        (time, "12:00:00.1234567", True),
        (timedelta, "PT0.0000001S", True),
        (timedelta, "PT0.5S", False),
    ],
)
def test_fractions_of_a_second_that_python_cannot_keep_are_told(output, spelling, is_told):
    """Python's times end at microseconds: digits behind them are not cut silently."""
    repairs = build_validator(list[output]).check([spelling]).repairs
    assert [repair["detail"].endswith("loses digits") for repair in repairs] == [True] * is_told


@pytest.mark.parametrize(
    ("output", "text", "is_lossless"),
    [
        (dict[str, float], '{"a": 9007199254740993}', False),
        (dict[str, float], '{"a": 9007199254740992}', True),
        (dict[str, int], '{"a": 9007199254740993}', True),
        (dict[str, datetime], '{"a": "2024-01-01T00:00:00.123456789Z"}', False),
        (dict[str, bool], '{"a": "true"}', True),
    ],
)
def test_the_record_says_that_a_conversion_lost_digits(output, text, is_lossless):
    """`lossless` counts digits that the type cannot keep, like those that JSON cannot."""
    records: list[Any] = []
    retry_llm_call(lambda _: text, "x", output=output, on_attempt=records.append)
    assert records[-1]["lossless"] is is_lossless
    assert ("rounded" in [repair["kind"] for repair in records[-1]["repairs"]]) is not is_lossless


def test_an_issue_of_two_branches_is_told_once():
    """Each branch of a union judges the same field in the same way."""
    first, second = (create_model(name, n=(int, ...)) for name in ("First", "Second"))
    issues = build_validator(first | second).check({"n": "x"}).issues
    assert [(one["path"], one["code"]) for one in issues] == [("/n", "int_parsing")]
