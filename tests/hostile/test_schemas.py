"""JSON Schemas that attack: nothing is fetched, no pattern backtracks, nothing overflows."""

import random
import re
import subprocess
import sys
from typing import Any

import pytest

from graph_retry._core.output.json_schema.linear_patterns import matcher
from graph_retry.output import build_validator
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
}


@pytest.mark.slow
def test_no_pattern_runs_for_ever() -> None:
    """Each of these takes a backtracking search hours to ages; all of them end within a limit."""
    code = (
        "from tests.hostile.test_schemas import BOMBS; from graph_retry._core.output.build import "
        "build_validator\nfor schema, value in BOMBS.values(): build_validator(schema).check(value)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


@pytest.mark.parametrize(
    ("schema", "value", "ok"),
    [
        ({"patternProperties": {"^a": {"type": "null"}}}, {"ab": 1}, False),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}, True),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ba": 1}, False),
        (
            {"patternProperties": {"^a": {}}, "additionalProperties": {"type": "null"}},
            {"ba": 1},
            False,
        ),
    ],
)
def test_named_patterns_keep_their_meaning(schema: Any, value: Any, ok: bool) -> None:
    """A property that no pattern matches is an additional one."""
    assert build_validator(schema).check(value).ok is ok


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
        ({"pattern": "(a" * 3_000}, "linear"),
        ({"pattern": "((a{1000}){1000}){1000}"}, "size limit"),
        ({"allOf": [{"patternProperties": {"a": {}}}], "unevaluatedProperties": False}, "both"),
    ],
)
def test_what_leads_out_or_backtracks_is_refused_when_built(schema: Any, named: str) -> None:
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
