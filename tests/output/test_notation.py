"""The short notation of a type: it says all that its JSON Schema demands, or quotes this part."""

import json
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from graph_retry.output import describe_type


class Leaf(BaseModel):
    kind: Literal["leaf"]
    value: Annotated[int, Field(gt=0, le=9, description="the\n value")] | None = None


class Tree(BaseModel):
    """Has trees."""

    kind: Literal["tree"]
    children: list["Tree | Leaf"]


class Boxed(BaseModel, extra="forbid"):
    leaf: Leaf
    pair: tuple[int, str]
    names: Annotated[list[Annotated[str, Field(max_length=3)]], Field(min_length=1)]
    scores: dict[str, float]
    marks: set[int]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, "any"),
        ({"title": "N", "default": 1}, "any"),
        ({"type": ["string", "null"], "maxLength": 1}, "string (at most 1 character) or null"),
        (
            {"type": ["string", "null"], "pattern": "^A$", "maxLength": 3, "minLength": 1},
            "string (matches ^A$, such as A, at most 3 characters, at least 1 character) or null",
        ),
        ({"const": {"a": [1]}}, '{"a": [1]}'),
        ({"enum": ["ä", None, 1]}, '"ä" or null or 1'),
        ({"type": "string", "pattern": "^A\\d$"}, "string (matches ^A\\d$, such as A1)"),
        ({"type": "string", "format": "date"}, "string (date as YYYY-MM-DD)"),
        ({"type": "number", "exclusiveMinimum": 0}, "float (more than 0)"),
        ({"type": "integer", "examples": [3], "description": "n"}, "int (n, such as 3)"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": {"enum": [1, 2]}}, "(1 or 2)[]"),
        ({"type": "object"}, "{\n  [key: string]: any,\n}"),
        ({"type": "object", "additionalProperties": False}, "{\n}"),
        ({"type": "object", "required": ["a b"]}, '{\n  "a b": any,\n}'),
    ],
)  # fmt: skip
def test_a_schema_is_said_shortly(schema, said):
    """Types, choices, limits, notes, and keys of any name."""
    assert describe_type(schema) == said


@pytest.mark.parametrize(
    "part",
    [
        False,
        {"not": {"type": "null"}},
        {"allOf": [{"type": "integer"}]},
        {"required": ["a"]},  # It allows a text, too.
        {"type": "object", "patternProperties": {"^a": {}}},
        {"type": "object", "properties": {}, "minProperties": 1},
        {"type": "array", "items": {}, "contains": {"const": 1}},
        {"type": "array", "prefixItems": [{"type": "integer"}]},
        {"type": "integer", "format": "int32"},
        {"type": "string", "minimum": 1},
        {"enum": [1], "minimum": 1},
        {"if": {"const": 1}, "then": {"const": 1}},
        {"type": "string", "enum": ["a", 1]},
        {"type": ["string", "integer"], "const": 1},
    ],
)
def test_a_part_that_cannot_be_said_is_quoted(part):
    """The rest of the type is said as always."""
    whole = {"type": "object", "properties": {"n": part, "m": {"type": "null"}}, "required": ["n"]}
    assert describe_type(whole) == f"{{\n  n: JSON Schema {json.dumps(part)},\n  m?: null,\n}}"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "null"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {}}},
        {"$ref": "#/$defs/a", "minimum": 1, "$defs": {"a": {"type": "integer"}}},
        {"type": "array", "items": {"$dynamicRef": "#x"}, "$dynamicAnchor": "x"},
        {
            "anyOf": [{"$ref": place} for place in ("#/$defs/a", "#/definitions/a") * 2],
            "$defs": {"a": {"type": "integer"}},
            "definitions": {"a": {"type": "null"}},
        },
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "prefixItems": []},
    ],
)
def test_a_reference_that_would_lead_nowhere_makes_the_schema_whole(schema):
    """A quoted part of a schema has no definitions."""
    text = describe_type(schema)
    assert (
        json.loads(text.removeprefix("JSON Schema ")).items()
        >= {word: value for word, value in schema.items() if word != "$schema"}.items()
    )


def test_types_that_contain_themselves_have_names():
    """A definition that is used once stands where it is used."""
    assert describe_type(TypeAdapter(Tree).json_schema()) == (
        'Tree\nTree: {\n  kind: "tree",\n  children: (Tree or {\n    kind: "leaf",\n'
        "    value?: int (more than 0, at most 9) (the value) or null,\n  })[],\n} (Has trees.)"
    )


def test_all_kinds_of_parts_in_one_type():
    """Tuples, maps, sets and lists inside an object."""
    assert describe_type(Boxed.model_json_schema()).splitlines() == [
        "{",
        "  leaf: {",
        '    kind: "leaf",',
        "    value?: int (more than 0, at most 9) (the value) or null,",
        "  },",
        "  pair: [int, string],",
        "  names: (string (at most 3 characters))[] (at least 1 item),",
        "  scores: {",
        "    [key: string]: float,",
        "  },",
        "  marks: int[] (all different),",
        "}",
    ]
