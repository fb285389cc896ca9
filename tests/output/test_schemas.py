"""The walk through a JSON Schema: it loses no value that the schema allows, and it ends."""

import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_retry._core.ground.schemas import (
    ANY_KIND,
    alternatives,
    element,
    kind_of,
    kinds,
    kinds_of,
    member,
)
from graph_retry.output import build_validator

NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 1.5, "", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
PLAIN: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(True, False, {}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}),
        *({"type": kind} for kind in sorted(ANY_KIND)),
        *({"type": ["string", "object"]}, {"enum": [1, "x", None]}, {"const": 0}),
    ]
)


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, inner, max_size=2)
    keywords = {
        **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), several),
        **dict.fromkeys(("items", "additionalProperties"), inner),
        "properties": named,
        "required": st.lists(NAMES, max_size=1),
        "type": st.sampled_from(["object", "array", "number", ["null", "object", "array"]]),
        "patternProperties": st.dictionaries(st.just("^[ab]"), inner, max_size=1),
    }
    return st.fixed_dictionaries({}, optional=keywords)


SCHEMAS = st.recursive(PLAIN, _around, max_leaves=8)


def fits(schema: Any, value: Any, root: Any) -> bool:
    """Validate with the stock validator, references included."""
    whole = {"allOf": [schema], "$defs": root["$defs"]}
    try:
        return jsonschema.Draft202012Validator(whole).is_valid(value)
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # The stack ended in code of Rust.
            raise RecursionError from error
        raise


@given(SCHEMAS, st.fixed_dictionaries({"a": SCHEMAS, "b": PLAIN}), VALUES)
def test_a_value_that_fits_fits_one_alternative(schema, definitions, value):
    """It has one of the kinds, too, and its parts fit the schemas found for them."""
    root = {"$defs": definitions}
    try:
        if not fits(schema, value, root):
            return
        found = [one for one in alternatives(schema, root) if fits(one, value, root)]
    except RecursionError:  # a reference that leads back to itself
        alternatives(schema, root)
        return
    assert found
    assert any(kind_of(value) in kinds(one) for one in found)
    assert kind_of(value) in kinds_of(schema, root)
    for one in found:
        parts = value.items() if isinstance(value, dict) else ()
        inner = [(member(one, key), part) for key, part in parts]
        if isinstance(value, list):
            inner = [(element(one, n, root), part) for n, part in enumerate(value)]
        assert all(node is None or fits(node, part, root) for node, part in inner)


@pytest.mark.parametrize(
    ("node", "root", "found"),
    [
        ({"$ref": "#/$defs/n"}, {"$defs": {"n": {"type": "null"}}}, [{"type": "null"}]),
        ({"$ref": "#/$defs/a~1b/0"}, {"$defs": {"a/b": [{"type": "null"}]}}, [{"type": "null"}]),
        ({"$ref": "#/%24defs/n"}, {"$defs": {"n": {"type": "null"}}}, [{"type": "null"}]),
        ({"$ref": "#nowhere"}, {"type": "null"}, [{}]),
        ({"$ref": "https://example.com/x"}, {}, [{}]),
        ({"$id": "https://example.com/x", "type": "null"}, {}, [{}]),
        ({"allOf": [{"type": "null"}], "title": "T"}, {}, [{"title": "T", "type": "null"}]),
        ({"type": "object", "anyOf": [{"type": "null"}, {"required": ["a"]}]}, {}, 1),
        ({"type": ["integer", "null"]}, {}, [{"type": "integer"}, {"type": "null"}]),
        (None, {}, [{}]),
        (False, {}, []),
    ],
)
def test_what_is_found(node, root, found):
    """References of other documents allow anything; demands that exclude each other nothing."""
    made = alternatives(node, root)
    assert (len(made) if isinstance(found, int) else made) == found


def test_members_of_all_demands_are_joined():
    """A part of a schema beside `anyOf` counts for each branch."""
    branches = [{"properties": {"kind": {"const": word}}} for word in ("a", "b")]
    one, other = alternatives({"properties": {"n": {"type": "null"}}, "oneOf": branches}, {})
    assert member(one, "n") == member(other, "n") == {"type": "null"}
    assert [member(one, "kind"), member(other, "kind")] == [{"const": "a"}, {"const": "b"}]


def test_a_schema_that_doubles_ends():
    """References that lead back to themselves, and products of unions, take bounded work."""
    twice = {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}
    many = {"allOf": [{"anyOf": [{"const": n} for n in range(50)]} for _ in range(50)]}
    started = time.process_time()
    assert kinds_of(twice, {"$defs": {"a": twice}}) == ANY_KIND
    assert kinds_of(many, {}) <= ANY_KIND
    assert time.process_time() - started < 2


RECURSIVE = {"oneOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}]}


def checked_below(frames, validator, value):
    """Check a value with this many more frames on the stack."""
    return checked_below(frames - 1, validator, value) if frames else validator.check(value)


def test_a_value_at_the_end_of_the_stack_is_refused():
    """Wherever the stack ends, also inside the look-up of a reference, which is code of Rust."""
    validator, refused, value = build_validator(RECURSIVE), [], None
    for _ in range(90):
        value = [value]
    for frames in range(250):  # One of these fills the stack in the look-up.
        refused += checked_below(frames, validator, value).issues
    assert {each["code"] for each in refused} == {"too_deep"}
    assert len(refused) < 250
