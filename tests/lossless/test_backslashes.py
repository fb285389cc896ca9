"""Backslashes that happen to be escapes of JSON: in patterns, formulas and paths."""

import itertools
import json

import pytest

from graph_retry.lossless import read as parse_output

F = "```"
KEPT = {  # A text in which each backslash is a character.
    "word boundary": r"\bfoo\b",
    "boundary and class": r"^\b\w+\s",
    "boundary and group": r"\b(?:a|b)",
    "fraction": r"$\frac{1}{2}$",
    "quantifier": r"$\forall x$",
    "Greek": r"$\rho + \beta$",
    "angle": r"\theta",
    "product": r"a \times b",
    "text": r"\text{abc}",
    "path without an escape": r"C:\Windows\System32",
    "path with a folder that is no escape": r"C:\Users\me\report\file.txt",
    "operator": r"\nabla f",
}
UNCLEAR = {  # Some of the backslashes may be escapes.
    "path": r"C:\bin\temp\new\reports",
    "path of tabs and lines": r"C:\temp\new",
    "path with a code": r"C:\temp\u00e9",
    "pages": r"page 1\fPage 2",
    "lines": r"one\rtwo",
    "boundary and tab": r"\bfoo\b\tx",
    "fraction of texts": r"\frac{\text{a}}{b}\n",
}
ESCAPES = {  # What stays an escape.
    "lines": r"a\nb\tc\r\nd",
    "code": r"if x:\n\treturn y\n",
    "question": r"Q:\nWhat",
    "escaped": r"\\bfoo\\b \\frac{1}{2}",
    "one character": r"\b",
    "codes after a letter": r"B:\u00e9t\u00e9",
    "surrogates after a letter": r"A:\ud800\udc00",
    "matrix": r"\\begin{matrix}\n1\n\\end{matrix}",
}
PLACES = {
    "strict": '{"a": "@", "n": 1}',
    "nested": '{"a": [{"b": ["@"]}]}',
    "fence": F + 'json\n{"a": "@"}\n' + F,
    "prose": 'Here: {"a": "@"}',
    "Python": "{'a': '@', 'b': None,}",
    "comma": '{"a": "@",}',
    "list": '["@", "x"]',
}


def texts_in(value):
    """Yield all texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_in(inner)


@pytest.mark.parametrize(("place", "text"), [*itertools.product(PLACES, KEPT)])
def test_a_backslash_of_a_pattern_or_formula_is_kept(place, text):
    """No text has a backspace or form feed in it, whatever else is wrong with the document."""
    parsed = parse_output(PLACES[place].replace("@", KEPT[text]), complete=True)
    assert KEPT[text] in [*texts_in(parsed.value)]
    assert "bad_escape" in [each["kind"] for each in parsed.repairs]


@pytest.mark.parametrize(("place", "text"), [*itertools.product(PLACES, UNCLEAR)])
def test_a_backslash_that_may_be_either_is_refused(place, text):
    """A value with a tab in a path would look right."""
    parsed = parse_output(PLACES[place].replace("@", UNCLEAR[text]), complete=True)
    assert parsed.failure is not None
    assert parsed.failure["kind"] == "ambiguous"


@pytest.mark.parametrize(("place", "text"), [*itertools.product(PLACES, ESCAPES)])
def test_an_escape_stays_one(place, text):
    """Line breaks and tabs are what models write in code and tables."""
    parsed = parse_output(PLACES[place].replace("@", ESCAPES[text]), complete=True)
    assert json.loads(f'"{ESCAPES[text]}"') in [*texts_in(parsed.value)]


def test_strict_levels_read_escapes_as_json_has_them():
    """At `none` and `minimal`, the caller wants what the standard library reads."""
    assert parse_output(r'{"a": "\bx"}', "none").value == {"a": "\bx"}
