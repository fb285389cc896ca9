"""Rules that hold for any text. `REPAIR_EXAMPLES=10000` runs each that many times."""

import json
import math
import os
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graph_retry.lossless import read as parse_output

many = settings(
    max_examples=int(os.environ.get("REPAIR_EXAMPLES", "150")),
    suppress_health_check=[HealthCheck.too_slow],
)
# Models write no backspace, form feed or lone carriage return: see `test_backslashes`.
strings = st.text(st.characters(exclude_characters="\b\f\r"))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | strings
values = st.recursive(
    scalars.filter(lambda value: value not in (math.inf, -math.inf)),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(strings, inner, max_size=5),
    max_leaves=15,
)
documents = values.filter(lambda value: isinstance(value, (dict, list)))
layouts = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
# Text made of what matters to the reader.
CHARACTERS = "{}[]()\"'`,:=#/*\\ \n\tab19.-+<>|“”’｛：，"
TOKENS = [
    "...", "```", "~~~", "//", "/*", "*/", "<think>", "</think>", "true", "None", "NaN", '"a":',
    "'b':", "{{", "}}", '\\"', "\\n", "\\u12", '"""', "json", "1,000", "0x1", "undefined", "\ufeff",
]  # fmt: skip
crumbs = st.lists(st.sampled_from([*CHARACTERS, *TOKENS]), max_size=30).map("".join)


def same(left: Any, right: Any) -> bool:
    """Compare with types: `True`, `1` and `1.0` differ."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@many
@given(values, layouts)
def test_strict_json_is_untouched(value, layout):
    """What the standard library reads comes back the same, without a repair."""
    text = json.dumps(value, **layout)
    parsed = parse_output(text)
    if not isinstance(value, str):  # a string may hold JSON
        assert (parsed.ok, parsed.text, parsed.repairs) == (True, text, [])
        assert repr(parsed.value) == repr(json.loads(text))


@many
@given(st.text() | crumbs, st.sampled_from([None, True, False]))
@example('{"a": "\\', None)
@pytest.mark.slow
def test_no_text_raises_and_reading_is_idempotent(text, complete):
    """Any text gives a value or a refusal; the JSON text of a value gives that value again."""
    parsed = parse_output(text, complete=complete)
    assert parsed.ok is (parsed.failure is None)
    if parsed.ok and complete is not False:
        again = parse_output(parsed.text)
        assert again.ok
        assert same(again.value, parsed.value)
        assert {r["kind"] for r in again.repairs} <= {"non_finite", "json_in_string"}


@many
@given(documents, layouts, st.data())
def test_a_cut_document_is_refused(value, layout, data):
    """A truncated document gives a value only where what is left is one by itself."""
    text = json.dumps(value, **layout)
    left = text[: data.draw(st.integers(0, len(text) - 1))]
    parsed = parse_output(left)
    try:
        whole = json.loads(left)
    except ValueError:
        assert not parsed.ok
    else:
        assert same(parsed.value, whole)


@many
@given(documents)
def test_a_python_repr_is_read(value):
    """What Python prints of a JSON value is read back, or refused, but never as another value."""
    parsed = parse_output(repr(value))
    assert not parsed.ok or same(parsed.value, value)


PATHOLOGICAL = {
    "brackets": "[",
    "braces": "{",
    "keys": '{"a":',
    "quotes": '"',
    "list-of-quotes": '["',
    "prose-braces": "a { b ",
    "citations": "[1] x ",
    "escapes": '{\\"a',
    "backslashes": '{"\\\\',
    "fences": "```json\n",
    "thoughts": "<think>",
    "objects": '{"a": 1}',
    "lone-elements": "[1 ",
    "apostrophes": "{'it's ",
    "colons": '{"a"::',
    "spaces": '{"a":          ',
}


BETWEEN = {
    "comments-before": ("", "# 1\n", '{"a": 1}'),
    "blocks-before": ("1 ", "/* x */ ", '{"a": 1}'),
    "digits-before": ("", "1.", ' {"a": 1}'),
    "lines-in-a-string": ('{"a": "x "y" ,', "\n", ' z", "b": 1}'),
    "commas-in-a-string": ('{"a": "x "y" ', ",\n", ' z", "b": 1}'),
    "words-in-a-comment": ("[1, // ", 'x"a ', "\n]"),
    "commas-and-comments": ('{"a": true', ",/* */", ' "b": 1}'),
    "lines-before-a-brace": ('{"a": [\n', "1,\n", "2]\n}\n}"),
    "comments-behind": ("[]\n", "# x\n", "5"),
    "leading-commas": ("[1", "\n, 2 // x, 3", "\n]"),
}
GROWING = {name: ("", piece, "") for name, piece in PATHOLOGICAL.items()} | BETWEEN


@pytest.mark.parametrize("parts", GROWING.values(), ids=GROWING.keys())
@pytest.mark.long
def test_time_and_memory_are_linear(parts):
    """Eight times the text takes about eight times as long, and bounded memory a character."""
    before, piece, after = parts

    def cost(size: int) -> float:
        text = before + piece * (size // len(piece)) + after
        started = time.process_time()
        parse_output(text)
        parse_output(text, complete=True)
        return time.process_time() - started

    small = max(cost(10_000), cost(10_000), 0.002)
    large = min(cost(80_000), cost(80_000))  # the collector of garbage may come between
    assert large < 8 * 6 * small
    tracemalloc.start()
    parse_output(before + piece * (50_000 // len(piece)) + after)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000 * 400


def test_one_long_string():
    """A megabyte in one broken string takes no longer than reading it."""
    text = '{"a": "' + "x" * 1_000_000 + '",}'
    started = time.process_time()
    assert len(parse_output(text).value["a"]) == 1_000_000
    assert parse_output(text[:-3]).ok is False
    assert time.process_time() - started < 2


@pytest.mark.parametrize("piece", ["\n", " \n", "- \n", "\r\n", "— ", "wait. ", '"a" ', "x: \n"])
@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
def test_much_around_an_answer_takes_no_longer_than_as_much_in_it(piece, before):
    """Models that run astray repeat empty lines without end; a second reads megabytes of them."""
    around = piece * (40_000 // len(piece))
    text = f"x {around}\n[{{}}]" if before else f"[{{}}]\n{around}x"
    started = time.process_time()
    parse_output(text)
    assert time.process_time() - started < 2
