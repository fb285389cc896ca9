"""An accepted value lives in state as plain JSON and comes back as what it was."""

import json
from collections import deque
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID, uuid4

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    RootModel,
    SecretStr,
    computed_field,
    field_serializer,
)
from typing_extensions import TypedDict

from graph_retry._core.ground.issues import json_problem
from graph_retry.output import build_validator
from tests.output.validating import same

NAN = float("nan")
UUID_TEXT = "6f1f4e5e-8a55-4a51-9a0e-0d3c2c7a1b11"


class Color(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: int
    tags: set[str] = field(default_factory=set)


class Row(TypedDict):
    id: int
    at: datetime


class Pair(NamedTuple):
    left: int
    right: str


class Aliased(BaseModel):
    user_id: int = Field(alias="userId")


class TwoAliases(BaseModel):
    user_id: int = Field(validation_alias="uid", serialization_alias="ID")
    deep: int = Field(validation_alias=AliasPath("a", 0))
    either: int = Field(validation_alias=AliasChoices("one", "other"))


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int

    @computed_field
    @property
    def area(self) -> int:
        return self.width**2


class Excluded(BaseModel):
    name: str
    note: str = Field(exclude=True)


class Displayed(BaseModel):
    price: int

    @field_serializer("price")
    def in_euro(self, price: int) -> str:
        return f"{price} EUR"


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    x: int


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    at: date


class Nested(BaseModel):
    points: dict[str, list[Point]]
    row: Row | None = None
    pet: "Cat | Dog"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    age: float


class Blob(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    data: bytes


class Careless(BaseModel):
    score: float = 0
    note: str = None  # type: ignore[assignment]


class Fresh(BaseModel):
    id: int
    seen: list[float] = Field(default_factory=lambda: [next(COUNTER)])


COUNTER = map(float, range(1_000_000))
Nested.model_rebuild()

ROUND_TRIPS = [
    pytest.param(int, 5, 5, id="int"),
    pytest.param(float, 5, 5.0, id="int-for-float"),
    pytest.param(Any, {"a": [1, 1.0, True, None]}, {"a": [1, 1.0, True, None]}, id="any"),
    pytest.param(int | str, "1", "1", id="union-keeps-text"),
    pytest.param(str | date, "2024-01-02", "2024-01-02", id="union-of-likes"),
    pytest.param(tuple[int, date], [1, "2024-01-02"], (1, date(2024, 1, 2)), id="tuple"),
    pytest.param(set[int], [2, 1, 2], {1, 2}, id="set"),
    pytest.param(frozenset[str], ["a"], frozenset("a"), id="frozenset"),
    pytest.param(deque[int], [1], deque([1]), id="deque"),
    pytest.param(dict[int, date], {"1": "2024-01-02"}, {1: date(2024, 1, 2)}, id="int-keys"),
    pytest.param(Decimal, "1.10", Decimal("1.10"), id="decimal"),
    pytest.param(Decimal, 2**80, Decimal(2**80), id="decimal-beyond-64-bits"),
    pytest.param(datetime, "2024-01-02T03:04:05Z", None, id="datetime"),
    pytest.param(timedelta, "PT1H", timedelta(hours=1), id="timedelta"),
    pytest.param(UUID, UUID_TEXT, UUID(UUID_TEXT), id="uuid"),
    pytest.param(Color, "red", Color.RED, id="enum"),
    pytest.param(dict[Color, Level], {"red": 1}, {Color.RED: Level.LOW}, id="enum-keys"),
    pytest.param(bytes, "é", "é".encode(), id="bytes"),
    pytest.param(Blob, {"data": "/wA="}, Blob(data=b"\xff\x00"), id="base64"),
    pytest.param(Path, "a/b", Path("a/b"), id="path"),
    pytest.param(Json[list[int]], "[1]", [1], id="json-in-a-string"),
    pytest.param(Pair, [1, "a"], Pair(1, "a"), id="named-tuple"),
    pytest.param(Point, {"x": 1, "tags": ["a"]}, Point(1, {"a"}), id="dataclass"),
    pytest.param(Row, {"id": 1, "at": "2024-01-02T00:00:00"}, None, id="typed-dict"),
    pytest.param(RootModel[list[int]], [1], RootModel[list[int]]([1]), id="root-model"),
    pytest.param(Aliased, {"userId": 1}, Aliased(userId=1), id="alias"),
    pytest.param(TwoAliases, {"uid": 1, "a": [2], "other": 3}, None, id="aliases-that-differ"),
    pytest.param(Computed, {"width": 2}, Computed(width=2), id="computed-field"),
    pytest.param(Excluded, {"name": "a", "note": "b"}, None, id="excluded-field"),
    pytest.param(Displayed, {"price": 3}, Displayed(price=3), id="one-way-serializer"),
    pytest.param(Open, {"x": 1, "y": {"z": 2}}, Open(x=1, y={"z": 2}), id="extras"),
    pytest.param(Strict, {"at": "2024-01-02"}, Strict(at=date(2024, 1, 2)), id="strict-config"),
    pytest.param(SecretStr, "hidden", SecretStr("hidden"), id="secret"),
    pytest.param(Fresh, {"id": 1}, None, id="default-factory"),
    pytest.param(Careless, {}, None, id="defaults-of-another-type"),
    pytest.param(
        Annotated[list[str], BeforeValidator(str.split)], "a b", ["a", "b"], id="one-way-validator"
    ),
    pytest.param(
        Annotated[str, AfterValidator(lambda text: text + "!")], "a", "a!", id="not-idempotent"
    ),
    pytest.param(
        Nested,
        {"points": {"a/b": [{"x": 1}]}, "pet": {"kind": "dog", "age": 3}},
        Nested(points={"a/b": [Point(1)]}, pet=Dog(kind="dog", age=3)),
        id="nested",
    ),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("output", "value", "expected"), ROUND_TRIPS)
def test_an_accepted_value_comes_back_from_state(output, value, expected, strict):
    """The plain JSON form is JSON, and rebuilds to the same value with the same types."""
    validator = build_validator(output, strict=strict)
    checked = validator.check(value)

    assert checked.issues == []
    assert expected is None or same(checked.value, expected)
    assert json_problem(checked.jsonable) is None
    stored = json.loads(json.dumps(checked.jsonable))
    assert same(validator.rebuild(stored), checked.value)


@pytest.mark.parametrize(
    ("output", "value", "jsonable"),
    [
        (Aliased, {"userId": 1}, {"userId": 1}),
        (TwoAliases, {"uid": 1, "a": [2], "one": 3}, {"uid": 1, "a": [2], "one": 3}),
        (Computed, {"width": "2"}, {"width": 2}),
        (Excluded, {"name": "a", "note": "b"}, {"name": "a", "note": "b"}),
        (Displayed, {"price": "3"}, {"price": "3"}),
        (Point, {"x": 1}, {"x": 1, "tags": []}),
        (Aliased, Aliased(userId=1), {"userId": 1}),
        (list[Point], [Point(1)], [{"x": 1, "tags": []}]),
        (dict[str, Any], {"point": {"x": 1}}, {"point": {"x": 1}}),
    ],
)
def test_what_state_shows(output, value, jsonable):
    """State shows what the model was asked for; the input stands in where that is lossy."""
    validator = build_validator(output)
    checked = validator.check(value)

    assert same(checked.jsonable, jsonable)
    assert same(validator.rebuild(jsonable), checked.value)


def test_a_conversion_is_told_though_state_shows_the_input():
    """The input stands in for a lossy dump; what was converted in it is still reported."""
    repairs = build_validator(Displayed).check({"price": "3"}).repairs
    assert [repair["detail"] for repair in repairs] == ["(whole value): converted"]


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (Any, date(2024, 1, 2)),
        (dict[str, Any], {"at": {1, 2}}),
        (Displayed, Displayed(price=3)),
        (Excluded, Excluded(name="a", note="b")),
        (Aliased, type("Special", (Aliased,), {})(userId=1)),
    ],
)
def test_a_value_that_state_cannot_keep_is_named(output, value):
    """Python values that no plain JSON brings back raise, with the type and the way out."""
    with pytest.raises(TypeError, match="no plain JSON form") as caught:
        build_validator(output).check(value)
    assert f"`{type(value).__name__}`" in str(caught.value)


class Numbered(BaseModel):
    name: str
    number: str = Field(default_factory=lambda: str(uuid4()), exclude=True)


def test_a_value_that_comes_back_with_another_default_is_named():
    """Its JSON form is the input, but the field that the form leaves out has a new value."""
    with pytest.raises(TypeError, match="accepted a `Numbered`, which has no plain JSON form"):
        build_validator(Numbered).check({"name": "a"})


@pytest.mark.parametrize(
    ("output", "value", "code"),
    [
        (Any, NAN, "finite_number"),
        (float, NAN, "finite_number"),
        (Careless, {"score": "NaN"}, "finite_number"),
        (dict[str, Any], {"a": [float("inf")]}, "finite_number"),
        (int, 2**64, "int_range"),
        (Any, -(2**63) - 1, "int_range"),
        (str, "\ud83d", "json_invalid"),
        (Any, {"\ud83d": 1}, "json_invalid"),
    ],
)
def test_what_is_no_json_for_a_checkpoint_is_an_issue(output, value, code):
    """Numbers and text that would break or change in a checkpoint are refused, not stored."""
    assert [issue["code"] for issue in build_validator(output).check(value).issues] == [code]


@pytest.mark.parametrize(
    ("output", "edited", "named"),
    [
        (Aliased, {"userId": "x"}, "/userId"),
        (Aliased, {}, "/userId"),
        (list[Point], {"0": 1}, "(whole value)"),
        ({"title": "Order", "required": ["id"]}, {"di": 1}, "/id"),
    ],
)
def test_an_output_edited_in_state_is_named(output, edited, named):
    """State that no longer holds what was accepted raises, with the output and the place."""
    validator = build_validator(output)
    with pytest.raises(ValueError, match="`output` in graph state is no longer a valid") as caught:
        validator.rebuild(edited)
    assert f"`{validator.name}`" in str(caught.value)
    assert f"1. {named}: " in str(caught.value)
