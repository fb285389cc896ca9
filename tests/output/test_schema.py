"""JSON Schema: drafts, references, patterns, issues, and what is refused when it is built."""

import socket
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from graph_retry._core.ground.issues import describe
from graph_retry.output import build_validator

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
TREE = {
    "$schema": DRAFT_2020,
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z]+$"},
        "parts": {"type": "array", "items": {"$ref": "#"}},
    },
}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        pytest.param({"prefixItems": [{"type": "null"}]}, [None], [1], id="2020-12-by-default"),
        pytest.param(
            {"$schema": DRAFT_7, "items": [{"type": "null"}]}, [None], [1], id="draft-7-items"
        ),
        pytest.param(
            {"$schema": DRAFT_7, "prefixItems": [{"type": "null"}]}, [1], None, id="not-in-draft-7"
        ),
        pytest.param(
            {"$schema": DRAFT_4, "minimum": 1, "exclusiveMinimum": True}, 2, 1, id="draft-4"
        ),
        pytest.param({"enum": [1]}, 1, True, id="true-is-not-one"),
        pytest.param(
            {"dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}, id="dependencies-of-draft-7"
        ),
        pytest.param(
            {"$defs": {"a": {"$anchor": "x", "const": 1}}, "$ref": "#x"}, 1, 2, id="anchor"
        ),
        pytest.param({"$defs": {"a/b": {"const": 1}}, "$ref": "#/$defs/a~1b"}, 1, 2, id="pointer"),
        pytest.param(
            {"$id": "http://a.example/s", "$defs": {"n": {"$id": "n", "const": 1}}, "$ref": "n"},
            1,
            2,
            id="by-id",
        ),
        pytest.param(
            {
                "components": {
                    "N": {"properties": {"n": {"$ref": "#/components/N"}}, "maxProperties": 1}
                },
                "$ref": "#/components/N",
            },
            {"n": {"n": {}}},
            {"n": {"n": {}, "m": 1}},
            id="definitions-elsewhere",
        ),
        pytest.param(
            {"$dynamicAnchor": "node", "items": {"$dynamicRef": "#node"}, "type": "array"},
            [[[]]],
            [[1]],
            id="dynamic",
        ),
        pytest.param({"$ref": DRAFT_2020}, {"type": "null"}, {"type": "nil"}, id="a-draft-itself"),
        pytest.param(
            {"properties": {"$ref": {"type": "null"}}}, {"$ref": None}, {"$ref": 1}, id="named-ref"
        ),
        pytest.param({"const": {"$ref": "#/nowhere"}}, {"$ref": "#/nowhere"}, 1, id="ref-as-data"),
        pytest.param({"format": "email"}, "not an address", None, id="format-is-an-annotation"),
    ],
)
def test_a_schema_means_what_its_draft_says(schema, good, bad):
    """Drafts, references of every local kind, and no rule that is not in the schema."""
    validator = build_validator(schema)
    checked = validator.check(good)

    assert checked.ok
    assert checked.value == checked.jsonable == validator.rebuild(checked.jsonable) == good
    assert bad is None or not validator.check(bad).ok


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        pytest.param({"$ref": "http://a.example/x.json"}, "http://a.example/x.json", id="remote"),
        pytest.param({"$ref": "file:///etc/hostname"}, "file:///etc/hostname", id="file"),
        pytest.param({"items": {"anyOf": [{"$ref": "other.json"}]}}, "other.json", id="relative"),
        pytest.param({"$ref": "#/$defs/gone"}, "#/$defs/gone", id="pointer-to-nowhere"),
        pytest.param({"$ref": "#gone"}, "#gone", id="no-such-anchor"),
        pytest.param({"$ref": "#/allOf/x", "allOf": [{}]}, "#/allOf/x", id="no-such-index"),
        pytest.param({"x": {"y": {"$ref": "u"}}, "$ref": "#/x/y"}, '"u"', id="behind-a-reference"),
        pytest.param({"type": "nil"}, '"/type"', id="unknown-type"),
        pytest.param(
            {"properties": {"a/b": {"minimum": "1"}}}, '"/properties/a~1b/minimum"', id="place"
        ),
        pytest.param({"pattern": "("}, "unclosed group", id="pattern"),
        pytest.param({"pattern": r"^(?=.*\d)\w+$"}, "look-ahead", id="look-ahead"),
        pytest.param({"not": {"pattern": r"(a)\1"}}, "backreferences", id="back-reference"),
        pytest.param({"patternProperties": {r"^\w{1,9999}$": {}}}, "size limit", id="repeats"),
        pytest.param(
            {"$schema": "https://a.example/dialect"}, "https://a.example/dialect", id="dialect"
        ),
        pytest.param(
            {"$schema": "http://json-schema.org/draft-03/schema#"}, "draft-03", id="draft-3"
        ),
        pytest.param({"$schema": 7}, "7", id="draft-as-a-number"),
        pytest.param({"default": {1, 2}}, '"/default"', id="not-json"),
    ],
)
def test_a_faulty_schema_is_refused_when_it_is_built(schema, named, monkeypatch):
    """An invalid schema or a reference out of it is a `ValueError` that names it; no fetching."""
    monkeypatch.setattr(
        socket, "socket", lambda *args, **kwargs: pytest.fail("a socket was opened")
    )
    with pytest.raises(ValueError, match="`output` JSON Schema") as caught:
        build_validator(schema)
    assert named in str(caught.value)


ISSUES = [
    pytest.param(
        {"id": 1},
        [("/id", "type", 'type "string"', "1 (int)", "1 is not of type 'string'")],
        id="type",
    ),
    pytest.param(
        {"parts": [{"id": "a"}, {}]},
        [
            ("/id", "required", "a value", "the keys `parts`", "'id' is a required property"),
            ("/parts/1/id", "required", "a value", "no keys", "'id' is a required property"),
        ],
        id="missing-below-a-reference",
    ),
    pytest.param(
        {"id": "a", "parts": [{"id": "A"}]},
        [
            (
                "/parts/0/id",
                "pattern",
                'a text like "abc"',
                '"A" (str)',
                "\"A\" does not match '^[a-z]+$'",
            )
        ],
        id="pattern-below-a-reference",
    ),
]


@pytest.mark.parametrize(("value", "expected"), ISSUES)
def test_an_issue_says_where_and_what(value, expected):
    """A missing property has its own path; the code is the keyword that failed."""
    issues = build_validator(TREE).check(value).issues
    found = [(i["path"], i["code"], i["expected"], i["received"], i["message"]) for i in issues]
    assert found == expected


def test_a_union_says_what_is_closest():
    """`anyOf` alone tells a model nothing: the deepest failure is told instead."""
    schema = {"properties": {"a": {"anyOf": [{"type": "integer"}, TREE]}}}
    issues = build_validator(schema).check({"a": {"id": 5}}).issues

    assert [issue["path"] for issue in issues] == ["/a/id"]
    message = "5 is not of type 'string' (the closest way to satisfy `anyOf`)"
    assert issues[0]["message"] == message


def test_a_forbidden_value_is_an_issue():
    """A `false` schema has no keyword to blame (and `jsonschema` does not tell its path)."""
    issues = build_validator({"properties": {"a": False}}).check({"a": 1}).issues
    assert [(issue["path"], issue["code"]) for issue in issues] == [("", "schema")]


def test_a_large_value_is_not_spelled_out():
    """Neither a megabyte of text nor ten thousand errors end up in the ledger."""
    validator = build_validator({"items": {"type": "integer"}, "maxItems": 3})
    issues = validator.check(["x" * 1_000_000] * 200).issues

    assert len(issues) == 101
    assert issues[-1]["code"] == "more_issues"
    assert sum(len(str(issue)) for issue in issues) < 101 * 1_000
    assert issues[0]["message"].endswith("… is not of type 'integer'")


@pytest.mark.parametrize(
    ("pattern", "text", "code"),
    [
        pytest.param("b", "abc", None, id="anywhere"),
        pytest.param(r"^\d{2}$", "12\n", "pattern", id="dollar-is-the-end"),
        pytest.param(r"^(a+)+$", "a" * 100_000 + "b", "pattern", id="nested-quantifiers"),
        pytest.param(r"^[a[b]]$", "[]", None, id="bracket-in-a-set"),
        pytest.param(r"^\<b\>$", "<b>", None, id="escaped-angle-brackets"),
        pytest.param("^b$", 5, None, id="not-a-string"),
    ],
)
def test_a_pattern_is_matched_in_bounded_time(pattern, text, code):
    """Patterns keep their meaning, and the classic catastrophe is matched at once."""
    issues = build_validator({"pattern": pattern}).check(text).issues
    assert [issue["code"] for issue in issues] == ([] if code is None else [code])


def test_a_reference_that_turns_in_a_circle_is_an_issue():
    """A schema that only refers to itself can judge nothing, and does not hang."""
    issues = build_validator({"$ref": "#"}).check(1).issues
    assert [issue["code"] for issue in issues] == ["too_deep"]


@pytest.mark.parametrize(
    ("schema", "value", "code"),
    [
        ({"multipleOf": 0.1}, 10**400, "int_range"),
        ({}, float("nan"), "finite_number"),
        ({}, 2**64, "int_range"),
        ({}, "\ud83d", "string_unicode"),
    ],
)
def test_numbers_and_text_that_no_checkpoint_holds_are_issues(schema, value, code):
    """Such a value is told before any keyword meets it."""
    issues = build_validator(schema).check(value).issues
    assert [issue["code"] for issue in issues] == [code]


class Person(BaseModel):
    name: str


def test_a_model_instance_is_taken_as_its_json():
    """A provider's parsed object can be judged by a schema; the value is then plain JSON."""
    checked = build_validator({"required": ["name"]}).check({"name": (Person(name="Ada"),)})
    assert checked.value == {"name": [{"name": "Ada"}]}
    assert not build_validator({}).check(object()).ok


def test_the_callers_schema_is_copied():
    """Changing the dict afterwards changes nothing."""
    schema = {"properties": {"a": {"type": "string"}}}
    validator = build_validator(schema)
    schema["properties"]["a"]["type"] = "integer"

    assert validator.check({"a": "text"}).ok
    assert validator.schema == {"properties": {"a": {"type": "string"}}}


TREES = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from(["a", "B"]),
    lambda tree: (
        st.lists(tree, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "parts", "a/b"]), tree, max_size=3)
    ),
)


def lookup(node, part):
    """Go one step down, as a JSON Pointer part says."""
    return node[int(part)] if isinstance(node, list) else node[part]


@given(value=TREES)
def test_every_path_leads_somewhere(value):
    """Each issue's path exists in the data, but for the last part of a missing property."""
    for issue in build_validator(TREE).check(value).issues:
        parts = issue["path"].split("/")[1:]
        if issue["code"] == "required":
            assert parts.pop() not in reduce(lookup, parts, value)
        else:
            assert describe(reduce(lookup, parts, value)) == issue["received"]
