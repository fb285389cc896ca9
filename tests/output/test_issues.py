"""Issue records: bounded in every part, and printed one line each."""

import json
from collections import deque
from datetime import date
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from graph_retry._core.ground.issues import describe, issue, literal, wrap_error
from graph_retry._core.ground.json import pointer
from graph_retry._core.ground.pattern_examples import example_of
from graph_retry._core.output.build import build_validator
from graph_retry._core.output.validator import format_issues

DEEP: Any = None
DEEP_OBJECT: Any = None
for _ in range(5_000):
    DEEP, DEEP_OBJECT = [DEEP], deque([DEEP_OBJECT])


def test_issues_are_numbered():
    """Path, message and facts stand on one line; what is unknown is left out."""
    issues = [
        issue("", "not\n  an object", "type"),
        issue(["a", 0], "too small", "ge", "ge 3", "1 (int)"),
        issue("/b", "missing", "missing", "a value"),
    ]
    assert format_issues(issues).splitlines() == [
        "1. (whole value): not an object",
        "2. /a/0: too small (expected ge 3, received 1 (int))",
        "3. /b: missing (expected a value)",
    ]
    assert format_issues([]) == "no issues"


@pytest.mark.parametrize(("count", "lines"), [(20, 20), (21, 21), (500, 21)])
def test_a_long_list_is_cut(count, lines):
    """Twenty issues are shown, and how many there are beside them."""
    printed = format_issues([issue("", "bad", "odd")] * count).splitlines()
    assert len(printed) == lines
    assert count == 20 or printed[-1] == f"… and {count - 20} more"


def test_many_issues_are_bounded():
    """A hundred issues are kept, and one says that there are more."""
    issues = build_validator(list[int]).check(["x"] * 1_000).issues
    assert len(issues) == 101
    assert issues[-1]["message"] == "only the first 100 issues were looked at"
    assert len(build_validator(list[int]).check(["x"] * 100).issues) == 100


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("30", '"30" (str)'),
        (30, "30 (int)"),
        (None, "null"),
        (True, "true (bool)"),
        ({"é": [1.0]}, '{"é": [1.0]} (dict)'),
        (date(2024, 1, 2), '"2024-01-02" (date)'),
        ({(1, 2): 3}, "{(1, 2): 3} (dict)"),
    ],
)
def test_a_value_is_described_as_json_with_its_type(value, text):
    """Received values read like the data, and tell `1` from `"1"`."""
    assert describe(value) == text


@pytest.mark.parametrize(
    "value", ["x" * 10**6, list(range(10**6)), {"k" * 10**6: 1}, DEEP, DEEP_OBJECT]
)
def test_a_large_value_is_described_briefly(value):
    """At most 200 characters, with the type still to be seen."""
    text = describe(value)
    assert len(text) <= 200
    assert text.endswith(f" ({type(value).__name__})")


@given(st.text(st.characters(categories=["L", "Cs", "Cc", "So"])), st.integers(1, 30))
def test_text_is_cut_to_valid_unicode(text, limit):
    """No record holds more than its limit, or a lone surrogate."""
    cut = literal(text, limit)
    assert len(cut) <= limit
    assert cut.encode().decode() == cut
    record = issue([text], text, "odd", text, text)
    assert json.loads(json.dumps(record, ensure_ascii=False).encode()) == record


@given(st.lists(st.text() | st.integers(0, 99)))
def test_a_pointer_can_be_read_back(parts):
    """Slashes and tildes in keys are escaped as RFC 6901 says."""
    read = [p.replace("~1", "/").replace("~0", "~") for p in pointer(parts).split("/")[1:]]
    assert read == [str(part) for part in parts]


def test_a_json_error_is_an_issue():
    """`json.loads` in somebody's code says where it stopped."""
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    assert wrap_error(caught.value)[0]["code"] == "value_error"
    assert "line 1 column 2" in wrap_error(caught.value)[0]["message"]


def test_a_long_error_is_cut():
    """An exception that quotes a megabyte does not fill the ledger."""
    assert len(wrap_error(RuntimeError("x" * 10**6))[0]["message"]) == 500


@pytest.mark.parametrize(
    ("pattern", "example"),
    [
        (r"^\+\d{8,14}$", "+12345678"),
        (r"^(INV|CR)-[A-F]{2}\d{4}$", "INV-AB1234"),
        (r"^[a-z0-9]+(?:-[a-z0-9]+)*$", "abc"),
        (r"^[\w.+-]+@[\w-]+\.[a-z]{2,}$", "abc@abc.ab"),
        (r"^[^,]+$", "aaa"),
        # not understood, of any length, or not a pattern: the message alone tells it
        (r"^\p{L}+$", None),
        (r"(a|b)(?!c)", None),
        ("((((a{50}){50}){50}){50})", None),
        ("(a+){20}$^", None),
        ("[", None),
        ("^$", None),
    ],
)
def test_a_pattern_is_told_by_an_example_that_matches_it(pattern, example):
    """An example is checked with the pattern, so that a wrong one is never told."""
    assert example_of(pattern) == example


def test_limits_of_texts_are_told_in_words():
    """A model reads the length that its text has and may have, from both kinds of validators."""
    typed = TypeAdapter(Annotated[str, Field(max_length=3)])
    with pytest.raises(ValidationError) as caught:
        typed.validate_python("Ada Byron")
    (told,) = wrap_error(caught.value)
    (same,) = build_validator({"type": "string", "maxLength": 3}).check("Ada Byron").issues
    words = ("at most 3 characters", '"Ada Byron" (9 characters)')
    assert (told["expected"], told["received"]) == (same["expected"], same["received"]) == words
