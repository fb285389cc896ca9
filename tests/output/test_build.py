"""Which validator an `output` gets, and what is refused before any model is called."""

import subprocess
import sys
import typing
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal, NewType, Optional

import pytest
from pydantic import AfterValidator, BaseModel, StringConstraints
from typing_extensions import TypeAliasType, TypedDict

from graph_retry._core.output.build import build_validator, heuristic
from graph_retry._core.output.validator import Validator


class Person(BaseModel):
    """A model."""

    name: str


@dataclass
class Point:
    """A dataclass."""

    x: int


class Row(TypedDict):
    """A typed dict."""

    id: int


class Color(Enum):
    """An enum."""

    RED = "red"


class HasLength:
    """A validator that is an object with `__call__`."""

    def __call__(self, value: Any) -> bool:
        return len(value) > 0


Name = NewType("Name", str)
Alias = TypeAliasType("Alias", str)


@pytest.mark.parametrize(
    ("output", "kind", "name"),
    [
        (Person, "TypedValidator", "Person"),
        (Point, "TypedValidator", "Point"),
        (Row, "TypedValidator", "Row"),
        (Color, "TypedValidator", "Color"),
        (int, "TypedValidator", "int"),
        (dict, "TypedValidator", "dict"),
        (Any, "TypedValidator", "Any"),
        (list[int], "TypedValidator", "list[int]"),
        (int | None, "TypedValidator", "int | None"),
        (dict[str, tuple[Person, ...]], "TypedValidator", "dict[str, tuple[Person, ...]]"),
        (Optional[int], "TypedValidator", "int | None"),  # noqa: UP045  the old spelling is the case
        (typing.List[int], "TypedValidator", "list[int]"),  # noqa: UP006  likewise
        (Literal["a", "b"], "TypedValidator", "Literal['a', 'b']"),
        (Annotated[int, AfterValidator(abs)], "TypedValidator", None),
        (Name, "TypedValidator", None),
        (Alias, "TypedValidator", "Alias"),
        ({"title": "Order"}, "SchemaValidator", "Order"),
        ({}, "SchemaValidator", "JSON value"),
        (len, "FunctionValidator", "len"),
        (lambda value: value, "FunctionValidator", "value"),
        (partial(max, 0), "FunctionValidator", "max"),
        ("".join, "FunctionValidator", "str.join"),
        (HasLength(), "FunctionValidator", "HasLength"),
        (Person.model_validate, "FunctionValidator", "Person.model_validate"),
        (heuristic("array"), "SchemaValidator", "JSON array"),
    ],
)
def test_each_output_gets_its_validator(output, kind, name):
    """Types, schemas, functions and ready validators are told apart."""
    validator = build_validator(output)

    assert isinstance(validator, Validator)
    assert type(validator).__name__ == kind
    assert name is None or validator.name == name


@pytest.mark.parametrize(
    ("output", "named"),
    [
        (None, "null"),
        (42, "42 (int)"),
        ("Person", '"Person" (str)'),
        ([int], "list"),
        (Person(name="Ada"), "Person"),
        (type("Opaque", (), {}), "`Opaque`"),
        (list["Nowhere"], "Nowhere"),  # noqa: F821  a name that does not exist is the case
        (Annotated[str, StringConstraints(pattern="(")], "regex"),
    ],
)
def test_an_unsupported_output_is_named(output, named):
    """What came is in the error, and so is what may come."""
    with pytest.raises(TypeError, match="`output`") as caught:
        build_validator(output)
    assert named in str(caught.value)


def test_a_model_with_an_undefined_field_type_fails_at_once():
    """A forward reference to nothing is found before the first model call."""

    class Broken(BaseModel):
        part: "Missing"  # noqa: F821

    with pytest.raises(TypeError, match="`Broken` cannot be validated"):
        build_validator(Broken)


def of_text(text: str) -> bool:
    """Accept a short text."""
    return len(text) < 20


def test_a_function_of_a_text_is_given_the_text():
    """Brackets in it are text, too."""
    validator = build_validator(of_text)
    assert validator.check("see [1]").value == "see [1]"
    assert [each["code"] for each in validator.check("x" * 20).issues] == ["refused"]
    assert validator.schema == {"title": "of_text", "type": "string"}


@pytest.mark.parametrize(
    ("output", "wants_text"),
    [
        (str, True),
        (Annotated[str, AfterValidator(str.strip)], True),
        (Annotated[Name, StringConstraints(min_length=1)], True),
        (Alias, True),
        (str | None, False),
        (Literal["yes"], False),
        (Color, False),
        (list[str], False),
        (Person, False),
        ({"type": "string"}, False),
        (len, False),
        (of_text, True),
        (lambda value: value, False),
    ],
)
def test_only_str_wants_text(output, wants_text):
    """A model's text is the value itself where `str` is wanted, and JSON everywhere else."""
    assert build_validator(output).wants_text is wants_text


@pytest.mark.parametrize(
    ("output", "accepts_text"),
    [
        (str, True),
        (Literal["yes", "no"], True),
        (Literal["yes"], True),
        (Color, True),
        (date, True),
        (Literal["yes", 1], False),
        (Literal["yes"] | None, False),
        (int, False),
        (list[str], False),
        (Any, False),
        (Person, False),
        ({"type": "string", "maxLength": 3}, True),
        ({"enum": ["a", "b"]}, True),
        ({"const": "a"}, True),
        ({"enum": ["a", None]}, False),
        ({"type": ["string", "null"]}, False),
        ({}, False),
        (heuristic("string"), True),
        (len, False),
    ],
)
def test_text_is_accepted_where_only_strings_are(output, accepts_text):
    """A bare `yes` can be the value of a `Literal` or an enum, though JSON is tried first."""
    assert (build_validator(output).kinds == frozenset({"string"})) is accepts_text


def test_plain_text_is_taken_as_it_is():
    """Text that looks like JSON stays text when `str` is wanted."""
    checked = build_validator(str).check('{"a": 1}')
    assert (checked.value, checked.jsonable) == ('{"a": 1}', '{"a": 1}')


def test_a_type_has_a_schema_by_its_aliases():
    """The schema shown to a model or a form is the type's own, or nothing if it has none."""
    schema = build_validator(Person).schema
    assert schema is not None
    assert schema["required"] == ["name"]
    assert build_validator(list[Any]).schema == {"items": {}, "type": "array"}
    assert build_validator(typing.Callable[[], int]).schema is None
    assert build_validator(len).schema is None
    assert build_validator({"type": "null"}).schema == {"type": "null"}


@pytest.mark.parametrize(
    ("options", "value", "path"),
    [
        ({}, [1], None),
        ({}, None, None),
        ({"type": "object"}, {}, None),
        ({"type": "object"}, [], ""),
        ({"type": "integer"}, True, ""),
        ({"required": ["id"]}, {"id": None}, None),
        ({"required": ["id"]}, {"di": 1}, "/id"),
        ({"required": ["id"]}, ["id"], ""),
        ({"type": "object", "required": ("a", "b")}, {"a": 1}, "/b"),
    ],
)
def test_the_heuristic_checks_type_and_keys(options, value, path):
    """Any JSON, a type, some keys: each is checked, and nothing else."""
    issues = heuristic(**options).check(value).issues
    assert [issue["path"] for issue in issues] == ([] if path is None else [path])


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"required": "id"}, ValueError, "'id'"),
        ({"type": "dict"}, ValueError, "'dict'"),
        ({"type": "array", "required": ["id"]}, ValueError, "'array'"),
    ],
)
def test_the_heuristic_refuses_misuse(options, error, named):
    """A string for a list of keys, an unknown type, keys of a list: each is said."""
    with pytest.raises(error, match=named):
        heuristic(**options)


def test_jsonschema_is_imported_only_when_a_schema_is_used():
    """A program that never validates with JSON Schema does not load it."""
    program = """
import sys
import graph_retry._core.output.build as validate
assert validate.build_validator(int).check("x").issues
assert "jsonschema" not in sys.modules
validate.build_validator({})
assert "jsonschema" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_a_schema_may_first_be_used_in_the_event_loop_of_a_server():
    """`langgraph dev` refuses what blocks there; on Python 3.13 reading a folder is noticed."""
    program = """
import asyncio
from blockbuster import BlockBuster
from graph_retry.output import build_validator

async def judge():
    guard = BlockBuster()
    guard.functions["os.scandir"].activate()
    return build_validator({"type": "integer"}).check(1).ok

assert asyncio.run(judge())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
