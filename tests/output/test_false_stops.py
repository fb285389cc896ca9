"""No answer is stopped that would have been accepted: documents and types drawn at random."""

import datetime as dt
import enum
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Json,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass

from bench import false_stops
from graph_retry._core.output.build import build_validator
from graph_retry._core.output.partial import growing
from graph_retry._core.output.partial.early_end import Watch
from tests.parts import draws


@pytest.fixture
def at_every_character(monkeypatch):
    """Read the text again after every character."""
    monkeypatch.setattr(growing, "_STEP", 1)
    monkeypatch.setattr(growing, "_GROWTH", 10**9)


@pytest.mark.drawn
def test_no_valid_document_is_stopped():
    """A smaller draw of `python -m bench.false_stops`, which streams 10,000 and more."""
    drawn, wrong = false_stops.run_valid(1, draws(40, 1_000))
    assert wrong == []
    assert all(drawn[wrapper] for wrapper in false_stops.WRAPPERS)


@pytest.mark.drawn
@pytest.mark.usefixtures("at_every_character")
def test_no_document_is_too_strange_to_be_judged():
    """Any document may come where another is wanted; most are stopped."""
    drawn, wrong = false_stops.run_foreign(1, draws(25, 1_000))
    assert wrong == []
    assert drawn["stopped"] > drawn["not stopped"] / 2


@pytest.mark.drawn
@pytest.mark.usefixtures("at_every_character")
@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # Python reads the damaged texts, too
@pytest.mark.slow
def test_no_damaged_document_that_is_mended_is_stopped():
    """Where the reader of the whole mends a slip, the stream was not stopped because of it."""
    drawn, wrong = false_stops.run_damaged(3, draws(200, 3_000))
    assert wrong == []
    assert drawn["accepted as a whole, not stopped"] > 10


class Colour(enum.Enum):
    """A word or a number."""

    RED = "red"
    ONE = 1


class Small(enum.IntEnum):
    """A number."""

    ONE = 1
    TWO = 2


class Named(BaseModel):
    """A model."""

    x: int
    y: str = "q"


@dataclass
class Point:
    """A dataclass."""

    a: int
    b: float = 1.0


class Cat(BaseModel):
    """A branch whose tag and name are keys as well."""

    kind: Literal["cat", "text"]
    text: int = 0
    Cat: int = 0
    size: int


class Dog(BaseModel):
    """The other branch."""

    kind: Literal["dog"]
    text: str = ""


class Neighbours(BaseModel):
    """A field whose validator looks at another field, and one with a second key."""

    model_config = ConfigDict(populate_by_name=True)

    a: int = 0
    b: int = 0
    p: int = Field(default=0, validation_alias=AliasChoices("p", "q"))
    first: int = Field(default=0, alias="First")

    @field_validator("b")
    @classmethod
    def _needs(cls, value: int, info: Any) -> int:
        assert info.data.get("a") == 1
        return value


class Rewritten(BaseModel):
    """Objects and lists that are changed before their parts are validated, or judged as a whole."""

    n: int = 0
    tags: Annotated[list[int], BeforeValidator(lambda given: [0] if len(given) > 2 else given)] = []
    last: int = 0

    @model_validator(mode="before")
    @classmethod
    def _fixed(cls, given: Any) -> Any:
        return {} if isinstance(given, dict) and "fixed" in given else given

    @model_validator(mode="after")
    def _is_whole(self) -> "Rewritten":
        assert self.last
        return self


CATS = [{"kind": "text", "text": 1, "Cat": 2, "size": 3}, {"Cat": 1, "kind": "cat", "size": 1}]
ZERO = "00000000-0000-0000-0000-000000000000"
SCALARS: list[tuple[Any, list[Any]]] = [
    (int, [1, 2]),
    (Annotated[int, Field(strict=True, gt=0)], [1]),
    (float, [1, 2.5]),
    (bool, [True, False]),
    (str, ["a", ""]),
    (bytes, ["ab"]),
    (dt.date, ["2020-01-01"]),
    (dt.datetime, ["2020-01-01T00:00:00"]),
    (dt.timedelta, ["PT1S", 3]),
    (UUID, [ZERO]),
    (Decimal, [1.5, "2.5"]),
    (Path, ["/a"]),
    (Colour, ["red", 1]),
    (Small, [1, 2]),
    (Literal["a", 1] | None, ["a", 1, None]),
    (Any, [1, {"a": [1]}]),
    (Json[list[int]], ["[1, 2]"]),
    (Named, [{"x": 1}, {"y": "z", "x": 2}]),
    (Point, [{"a": 1, "b": 2}]),
    (set[int], [[1, 2, 1]]),
    (tuple[int, ...], [[1, 2, 3]]),
    (int | str, [1, "a"]),
    (Named | list[int], [{"x": 1}, [1]]),
    (Annotated[Cat | Dog, Field(discriminator="kind")], [*CATS, {"text": "", "kind": "dog"}]),
    (Cat | Dog, [*CATS, {"text": "x", "kind": "dog"}]),
    (
        Neighbours,
        [{"b": 2, "a": 1}, {"q": "x", "b": 1, "a": 1, "p": 1}, {"first": "x", "First": 1}],
    ),
    (Rewritten, [{"n": "x", "last": 1, "fixed": 1}, {"tags": ["x", 1, 2], "last": 1}]),
]
KEYS: list[tuple[Any, list[str]]] = [
    (int, ["1", "-2"]),
    (float, ["1.5", "2"]),
    (bool, ["true", "false"]),
    (str, ["a", "b"]),
    (dt.date, ["2020-01-01", "2021-01-01"]),
    (UUID, [ZERO]),
    (Decimal, ["1.5", "2"]),
    (Small, ["1", "2"]),
    (Literal["a", "b"], ["a", "b"]),
    (int | str, ["1", "a"]),
    (Annotated[int, Field(gt=0)], ["3"]),
]


def drawn_type(rng: random.Random, depth: int) -> tuple[Any, list[Any]]:
    """Draw a type, and JSON values that it may take."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(SCALARS)
    kind, values = drawn_type(rng, depth - 1)

    def some() -> Any:
        return rng.choice(values)

    match rng.randrange(6):
        case 0:
            return list[kind], [[some(), some(), some()]]
        case 1:
            key, names = rng.choice(KEYS)
            return dict[key, kind], [{name: some() for name in names}]
        case 2:
            return kind | None, [None, *values]
        case 3:
            config = ConfigDict(
                extra=rng.choice(["forbid", "ignore", "allow"]), strict=rng.choice([None, True])
            )
            made = create_model("Made", __config__=config, a=(kind, ...), b=(kind | None, None))
            return made, [{"a": some()}, {"b": some(), "a": some()}]
        case 4:
            return tuple[kind, kind], [[some(), some()]]
        case _:
            other, others = drawn_type(rng, 0)
            return kind | other, [*values, *others]


@pytest.mark.drawn
@pytest.mark.usefixtures("at_every_character")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.slow
def test_no_value_of_any_type_is_stopped(strict):
    """Whatever the type, lax or strict: what the whole would be accepted as comes to its end."""
    rng, judged = random.Random(1), 0
    for _ in range(draws(300, 3_000)):
        kind, values = drawn_type(rng, 3)
        validator = build_validator(kind, strict=strict)
        for value in values[:3]:
            if not validator.check(value).ok:
                continue
            judged += 1
            watch = Watch(validator, "standard")
            for character in json.dumps(value) + "\n":
                watch.add(character)
            assert watch.failure is None, (kind, value)
    assert judged > 200


NAMES = ["a", "b", "if", "x1"]


def drawn_schema(rng: random.Random, depth: int) -> Any:
    """Draw a JSON Schema, also one whose parts depend on one another."""

    def inner() -> Any:
        return drawn_schema(rng, depth - 1)

    if depth == 0 or rng.random() < 0.2:
        scalars = [{"type": "integer"}, {"enum": [1, "x"]}, {"type": ["string", "null"]}, {}, True]
        return rng.choice([*scalars, {"pattern": "^x"}, {"$ref": "#/$defs/a"}])
    match rng.randrange(5):
        case 0:
            return {rng.choice(["anyOf", "oneOf", "allOf"]): [inner(), inner()]}
        case 1:
            return {"anyOf": [inner(), {"type": "null"}]}
        case 2:
            more = [{}, {"maxItems": 2}, {"prefixItems": [inner()]}, {"contains": {"const": 1}}]
            return {"items": inner(), **rng.choice(more), **rng.choice([{"type": "array"}, {}])}
        case _:
            wanted = {"required": [rng.choice(NAMES)]}
            more = [
                {"additionalProperties": rng.choice([False, inner()])},
                {"if": wanted, "then": inner(), "else": inner()},
                {"dependentSchemas": {rng.choice(NAMES): inner()}},
                {"not": wanted},
                {"propertyNames": {"maxLength": 1}},
                {"unevaluatedProperties": False},
            ]
            members = {name: inner() for name in rng.sample(NAMES, 2)}
            kind = rng.choice([{"type": "object"}, {}])
            return {"properties": members, **rng.choice(more), **kind}


def drawn_value(rng: random.Random, depth: int = 3) -> Any:
    """Draw a JSON value that a drawn schema may accept."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([1, 1, "x", None])
    if rng.random() < 0.3:
        return [drawn_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {name: drawn_value(rng, depth - 1) for name in rng.sample(NAMES, rng.randrange(4))}


@pytest.mark.drawn
@pytest.mark.usefixtures("at_every_character")
def test_no_value_of_any_schema_is_stopped():
    """Conditions, unions and dependencies in a JSON Schema stop no value that it accepts."""
    rng, judged, stopped = random.Random(1), 0, 0
    for _ in range(draws(30, 3_000)):
        validator = build_validator({"allOf": [drawn_schema(rng, 3)], "$defs": {"a": True}})
        for _ in range(5):
            value = drawn_value(rng)
            watch = Watch(validator, "standard")
            for character in json.dumps(value) + "\n":
                watch.add(character)
            is_valid = validator.check(value).ok
            judged, stopped = judged + is_valid, stopped + (watch.failure is not None)
            assert not (is_valid and watch.failure), (validator.schema, value)
    assert judged > 20
    assert stopped > 2
