"""Judging by a JSON Schema is bounded in work, whatever schema and value are; `format` if asked."""

import functools
import itertools

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_retry import create_retry_node, retry_llm_call
from graph_retry._core.output.json_schema import bounded_work
from graph_retry.output import SchemaOfParams, build_validator

AGAIN = {"$ref": "#/$defs/n"}
BELOW = {"properties": {"c": AGAIN}}
DOUBLING = {
    "anyOf": {"anyOf": [{"required": ["c"], "properties": {"c": AGAIN}}, BELOW]},
    "oneOf": {"oneOf": [{"required": ["c"], "properties": {"c": AGAIN}}, BELOW]},
    "allOf": {"allOf": [BELOW, BELOW]},
    "if": {"if": {"properties": {"c": AGAIN}}, "then": {"properties": {"c": AGAIN}}},
    "not": {"not": {"properties": {"c": AGAIN}}, "properties": {"c": AGAIN}},
    "dependentSchemas": {
        "dependentSchemas": {"c": {"properties": {"c": AGAIN}}}, "properties": {"c": AGAIN},
    },
    "unevaluatedProperties": {
        "anyOf": [{"properties": {"c": AGAIN}}], "unevaluatedProperties": False,
    },
}  # fmt: skip


def nested(depth, innermost):
    """Make a value of so many levels."""
    return functools.reduce(lambda below, _: {"c": below}, range(depth), innermost)


def steps_of(schema, value, monkeypatch):
    """Return how many steps a value takes, and its issues."""
    made = []

    class Counting(bounded_work._Work):
        def __init__(self, left):
            super().__init__(left)
            made.append((left, self))

    monkeypatch.setattr(bounded_work, "_Work", Counting)
    issues = build_validator(schema).check(value).issues
    ((allowed, work),) = made
    return allowed - work.left, issues


@pytest.mark.parametrize("innermost", ["no", {}, 1], ids=str)
@pytest.mark.parametrize("keyword", DOUBLING)
def test_a_schema_that_judges_its_parts_repeatedly_is_linear(keyword, innermost, monkeypatch):
    """Without memory the steps double with each level; here they grow as the levels do."""
    schema = {"$defs": {"n": {"type": ["object", "integer"], **DOUBLING[keyword]}}, **AGAIN}
    steps = {}
    for depth in (4, 8, 16, 32, 64):
        steps[depth], issues = steps_of(schema, nested(depth, innermost), monkeypatch)
        assert "too_much_work" not in {problem["code"] for problem in issues}
    assert all(steps[2 * depth] < 3 * steps[depth] for depth in (4, 8, 16, 32))


@pytest.mark.parametrize("keyword", DOUBLING)
@pytest.mark.parametrize("innermost", ["no", {}, 1, None, {"c": 1.5}], ids=str)
def test_what_is_remembered_is_what_would_be_judged_again(keyword, innermost):
    """The verdict and the places of the first errors are those of `jsonschema` alone."""
    schema = {"$defs": {"n": {"type": ["object", "integer"], **DOUBLING[keyword]}}, **AGAIN}
    for depth in range(6):
        value = nested(depth, innermost)
        alone = [*jsonschema.Draft202012Validator(schema).iter_errors(value)]
        ours = build_validator(schema)._validator
        found = bounded_work.errors_of(ours, value, 1_000)
        assert [(one.message, [*one.absolute_path]) for one in found] == [
            (one.message, [*one.absolute_path]) for one in alone
        ]


def test_a_reference_that_depends_on_its_way_is_not_remembered():
    """A `$dynamicRef` may mean another schema when it is reached on another way."""
    schema = {
        "$id": "https://example.org/all", "properties": {
            "strict": {"$ref": "strict"}, "loose": {"$ref": "tree"},
        },
        "$defs": {
            "tree": {
                "$id": "tree", "$dynamicAnchor": "node", "type": "object",
                "properties": {"c": {"$dynamicRef": "#node"}},
            },
            "strict": {
                "$id": "strict", "$dynamicAnchor": "node", "$ref": "tree",
                "unevaluatedProperties": False,
            },
        },
    }  # fmt: skip
    below = {"c": {"x": 1}}
    judge = build_validator(schema).check
    assert judge({"loose": below}).ok
    assert not judge({"loose": below, "strict": below}).ok


def test_a_reference_that_leads_back_to_itself_is_an_issue():
    """No value ends it, so it is told."""
    schema = {"$defs": {"n": {"anyOf": [AGAIN, {"type": "integer"}]}}, **AGAIN}
    (issue,) = build_validator(schema).check({"a": 1}).issues
    assert issue["code"] == "too_deep"


@pytest.mark.slow
def test_a_large_value_is_judged_whole():
    """The steps that are allowed grow with the value."""
    schema = {
        "type": "array",
        "items": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }
    assert build_validator(schema).check([{"a": n} for n in range(50_000)]).ok
    (issue,) = build_validator(schema).check([*[{"a": 1}] * 10_000, {"a": "x"}]).issues
    assert issue["path"] == "/10000/a"


def test_unique_items_compares_no_item_with_each_other(monkeypatch):
    """Each value is looked at once: 6,000 objects of two fields are 18,000."""
    made = []
    key = bounded_work._key

    def counting(value):
        made.append(1)
        return key(value)

    monkeypatch.setattr(bounded_work, "_key", counting)
    validator = build_validator({"type": "array", "uniqueItems": True})
    assert validator.check([{"id": n, "name": "x"} for n in range(6_000)]).ok
    assert len(made) == 18_000


@pytest.mark.parametrize(
    ("schema", "make"),
    [
        ({"unevaluatedProperties": {"type": "integer"}}, lambda n: {str(i): i for i in range(n)}),
        ({"unevaluatedItems": {"type": "integer"}}, lambda n: [*range(n)]),
    ],
    ids=["properties", "items"],
)
def test_members_that_each_are_compared_with_each_are_bounded(schema, make):
    """2,000 are judged; 20,000 would take minutes, and are an issue instead."""
    validator = build_validator(schema)
    assert validator.check(make(2_000)).ok
    (issue,) = validator.check(make(20_000)).issues
    assert issue["code"] == "too_much_work"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5, "", "a", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


@given(st.lists(JSON, max_size=5))
def test_unique_items_finds_what_jsonschema_finds(items):
    """Numbers are equal by value, truth values are none of them, objects have no order.

    The stock `uniqueItems` sorts first and misses equal items; `const` compares two of them.
    """
    is_equal = (
        jsonschema.Draft202012Validator({"const": one}).is_valid(other)
        for one, other in itertools.combinations(items, 2)
    )
    assert build_validator({"uniqueItems": True}).check(items).ok == (not any(is_equal))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2026-11-23", "23.11.2026"),
        ("email", "ada@example.org", "ada"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("uuid", "0b5e2bf8-65a5-4bb4-8f3a-d35f6b7a7e10", "0b5e"),
        ("regex", "a+", "a("),
    ],
)
def test_formats_are_asserted_where_that_is_asked_for(name, good, bad):
    """By jsonschema's own checker; without the switch they are annotations."""
    schema = {"properties": {"x": {"type": "string", "format": name}}}
    assert build_validator(schema).check({"x": bad}).ok
    validator = build_validator(schema, check_formats=True)
    assert validator.check({"x": good}).ok
    (issue,) = validator.check({"x": bad}).issues
    assert (issue["path"], issue["code"]) == ("/x", "format")


def test_a_format_that_cannot_be_checked_is_refused():
    """One of the drafts' that needs a package; a name that no draft has stays an annotation."""
    known = jsonschema.Draft202012Validator.FORMAT_CHECKER.checkers
    missing = next(name for name in ("uri-template", "iri", "duration", "uri") if name not in known)
    with pytest.raises(ValueError, match=f'has the format "{missing}", which cannot be checked'):
        build_validator({"items": {"format": missing}}, check_formats=True)
    assert build_validator({"format": "color"}, check_formats=True).check("red?").ok


def test_the_option_reaches_the_validator():
    """Of both forms, and of a schema that the params hold."""
    date = {"type": "string", "format": "date"}
    given = {"params": {"wanted": date}}
    for output in (date, SchemaOfParams("wanted")):
        for check_formats, status in ((False, "succeeded"), (True, "exhausted")):
            node = create_retry_node(
                lambda params: '"today"', dict, output=output, review=False,
                check_formats=check_formats,
            )  # fmt: skip
            assert node.invoke(given)["status"] == status
    assert retry_llm_call(lambda _: '"today"', {}, output=date) == "today"
