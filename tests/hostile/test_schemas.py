"""JSON Schemas that attack: nothing is fetched, nothing runs for ever, nothing overflows."""

import random
import re
import subprocess
import sys
from typing import Any

import pytest

from graph_retry.validate import build_validator
from graph_retry.validate.schema_rules import MAX_STEPS, matcher
from tests.hostile.fuzzed import nested

PLAIN = [
    "b", "^b", "b$", "^ab?c*$", "^[a-z]+$", r"^\d{3}-\d{4}$", r"^\w+@\w+\.\w{2,}$", "a|b",
    "(a|b)+c",
    r"^\s*$", r"\bword\b", "^[^,]*$", "[.]", r"\.", r"^\/a\-b$", "é", r"\u00e9", "^.{2,4}$",
    "[a[b]",
    r"^\<b\>$", "^[a&&b]+$", "[--a]", "[+--]", "[a~~]", "[]a]", "[^]a]", r"[\]]", r"[a\-z]",
    r"[\w-]",
    "(?i)AB", "(?:ab){2}", "x*?y", r"[\d.]+", "^$", r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Z]{2}$",
]  # fmt: skip
ALPHABET = "abcxyABZ019_-.,+&~[]<>/@ é\t\n"


@pytest.mark.parametrize("pattern", PLAIN)
@pytest.mark.filterwarnings("ignore:Possible (nested set|set difference|set intersection)")
@pytest.mark.filterwarnings("ignore:Possible set symmetric difference")
def test_an_ordinary_pattern_means_what_it_means_to_python(pattern: str) -> None:
    """On 300 texts each the search agrees with `re.search`, but for `$` before a last new line."""
    chance, found = random.Random(pattern), matcher(pattern)
    texts = [
        "",
        "b",
        "abc",
        "<b>",
        "a&b",
        "word",
        "123-4567",
        "me@a.de",
        "/a-b",
        "abab",
        "xxy",
        "é",
    ]
    texts += ["".join(chance.choices(ALPHABET, k=chance.randrange(9))) for _ in range(288)]
    for text in texts:
        if not (text.endswith("\n") and "$" in pattern):
            assert found(text) == (re.search(pattern, text) is not None), text


def test_dollar_is_the_very_end() -> None:
    """As in ECMA 262, and unlike in Python."""
    assert not matcher("a$")("a\n")


MB = 1_000_000
BOMBS = {
    "nested-quantifiers": ({"pattern": "^(a+)+$"}, "a" * 100_000 + "b"),
    "alternatives": ({"pattern": "^(a|a)*$"}, "a" * 100_000 + "b"),
    "overlapping": ({"pattern": "(x+x+)+y"}, "x" * 100_000),
    "property-name": ({"patternProperties": {"^(a+)+$": {}}}, {"a" * 50_000 + "b": 1}),
    "additional": (
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"a" * 50_000 + "b": 1},
    ),
    "name-of-property": ({"propertyNames": {"pattern": "^(a+)+$"}}, {"a" * 50_000 + "b": 1}),
    "unique-objects": ({"uniqueItems": True}, [{"i": i} for i in range(100_000)]),
    "unique-mixed": ({"uniqueItems": True}, [*range(50_000), *map(str, range(50_000))]),
    "choices": ({"items": {"enum": [f"e{i}" for i in range(50_000)]}}, ["e49999"] * 5_000),
    "wrong-choices": ({"items": {"enum": [{"i": i} for i in range(20_000)]}}, [{"i": -1}] * 5_000),
    "multiples": ({"items": {"multipleOf": 1e-320}}, [2**63, 1e308, 5]),
    "many-branches": ({"anyOf": [{"type": "integer", "title": str(i)} for i in range(500)]},
        {"x": "x" * MB}),
    "wrong-items": ({"items": {"type": "string"}}, [1] * 200_000),
}  # fmt: skip


def test_nothing_runs_for_ever() -> None:
    """Each of these takes its naive rule hours to ages; all of them end within one limit."""
    code = (
        "from tests.hostile.test_schemas import BOMBS; from graph_retry.validate import "
        "build_validator\nfor schema, value in BOMBS.values(): build_validator(schema).check(value)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


@pytest.mark.parametrize(
    ("schema", "value", "ok"),
    [
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], True),
        ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
        ({"uniqueItems": True}, [0, False], True),
        ({"enum": [1, {"a": [0]}]}, 1.0, True),
        ({"enum": [1, {"a": [0]}]}, True, False),
        ({"enum": [1, {"a": [0]}]}, {"a": [0.0]}, True),
        ({"enum": [1, {"a": [0]}]}, {"a": [False]}, False),
        ({"patternProperties": {"^a": {"type": "null"}}}, {"ab": 1}, False),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}, True),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ba": 1}, False),
        (
            {"patternProperties": {"^a": {}}, "additionalProperties": {"type": "null"}},
            {"ba": 1},
            False,
        ),
        ({"type": ["string", "null"]}, 1, False),
    ],
)
def test_the_fast_rules_keep_their_meaning(schema: Any, value: Any, ok: bool) -> None:
    """`1` equals `1.0` and not true, wherever it stands; the order of keys does not matter."""
    assert build_validator(schema).check(value).ok is ok


def doubled(rule: str, depth: int = 40) -> dict[str, Any]:
    """Make a small schema whose parts refer twice to the next: 2**40 evaluations."""
    parts: dict[str, Any] = {"a0": {"type": "string"}}
    for level in range(1, depth):
        parts[f"a{level}"] = {rule: [{"$ref": f"#/$defs/a{level - 1}"}] * 2}
    return {"$defs": parts, "$ref": f"#/$defs/a{depth - 1}"}


@pytest.mark.parametrize("rule", ["allOf", "anyOf"])
def test_a_schema_that_doubles_is_given_up(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check has a number of steps; past it the issue says so."""
    monkeypatch.setattr("graph_retry.validate.schema_rules.MAX_STEPS", 20_000)
    (issue,) = build_validator(doubled(rule)).check("x" if rule == "allOf" else 1).issues
    assert "more than 20,000 steps" in issue["message"]
    assert MAX_STEPS == 1_000_000


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#"}}, "$ref": "#/$defs/a"}, 1),
        ({"items": {"$ref": "#"}}, nested(10_000)),
        ({"additionalProperties": {"$ref": "#"}}, nested(10_000, dict)),
        ({}, nested(300)),
    ],
)  # fmt: skip
def test_depth_without_end_is_an_issue(schema: Any, value: Any) -> None:
    """Neither a circle of references nor 10,000 levels overflow anything."""
    (issue,) = build_validator(schema).check(value).issues
    assert re.search("deep|depth", issue["message"])


def test_a_recursive_schema_reads_a_tree() -> None:
    """A hundred levels are fine."""
    schema = {"type": ["array", "string"], "items": {"$ref": "#"}}
    assert build_validator(schema).check(nested(60)).ok


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"$ref": "https://evil.example/x"}, "https://evil.example/x"),
        ({"$ref": "file:///etc/passwd"}, "file:///etc/passwd"),
        ({"$dynamicRef": "http://evil.example/x#a"}, "http://evil.example/x"),
        ({"$id": "http://evil.example/x", "items": {"$ref": "y"}}, '"y"'),
        ({"pattern": "(a" * 3_000}, "bounded"),
        ({"pattern": "((a{1000}){1000}){1000}"}, "size limit"),
        ({"allOf": [{"patternProperties": {"a": {}}}], "unevaluatedProperties": False}, "both"),
    ],
)
def test_what_cannot_be_kept_in_bounds_is_refused_when_built(schema: Any, named: str) -> None:
    """A `ValueError` names the part, before any value is judged."""
    with pytest.raises(ValueError, match="`output` JSON Schema") as caught:
        build_validator(schema)
    assert named in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_a_deep_schema_is_refused() -> None:
    """Neither 150 nor 10,000 levels overflow the check of the schema itself."""
    for depth in (150, 10_000):
        schema: dict[str, Any] = {}
        for _ in range(depth):
            schema = {"not": schema}
        with pytest.raises(ValueError, match="nested"):
            build_validator(schema)
