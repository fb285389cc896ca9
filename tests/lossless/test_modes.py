"""Every way of writing JSON badly that the reader understands, one row each."""

import json
import math
import pprint
from typing import Any

import pytest

from graph_retry.lossless import read as parse_output

A = {"a": 1}
F = "```"

AROUND = {
    "fence": f"{F}json\n@\n{F}",
    "fence-bare": f"{F}\n@\n{F}",
    "fence-other-tag": f"{F}python\n@\n{F}",
    "fence-tildes": "~~~json\n@\n~~~",
    "fence-four-ticks": f"{F}`json\n@\n{F}`",
    "fence-unclosed": f"{F}json\n@",
    "fence-inline": f"{F}json @ {F}",
    "fence-in-prose": f"Here it is:\n\n{F}json\n@\n{F}\n\nAnything else?",
    "fence-twice-the-same": f"{F}\n@\n{F}\nAgain:\n{F}\n@\n{F}",
    "inline-code": "The object is `@`.",
    "think": "<think>Hm.</think>\n@",
    "think-with-draft": '<think>Maybe {"draft": true}?</think>@',
    "think-with-broken-draft": '<think>Maybe {"draft": ...</think>@',
    "think-without-opener": 'So {"draft": 1}.\n</think>\n@',
    "harmony-channels": '<|channel|>analysis<|message|>{"x": 1}<|channel|>final<|message|>@',
    "xml-wrapper": "<answer>@</answer>",
    "cdata": "<json><![CDATA[@]]></json>",
    "special-tokens": "<|im_start|>assistant\n@<|im_end|>",
    "instruction-tokens": "[INST] do it [/INST] @</s>",
    "assignment": "const data = @;",
    "typed-assignment": "data: dict[str, int] = @",
    "call": "json.dumps(@)",
    "leading-json": "json\n@",
    "label": "**Final answer:** @",
    "prose-before": "Sure, here you go: @",
    "prose-after": "@\n\nI hope this helps!",
    "prose-with-braces": "I filled in {name} and {id}.\n@",
    "prose-with-quotes": "You said \"do it\", so I've done it:\n@\nThe 'a' is one.",
    "citations": "According to [1] and [2, 3]:\n@\n\nSources: [1], [2].",
    "byte-order-mark": "\ufeff@",
    "zero-width": "\u200b@\u2060",
    "react": "Thought: I know it.\nAction: @",
    "exclamation": "I would say @!",
    "quoted-whole": "'@'",
    "repeated": "@\n\n@",
    "fence-in-another-language": f"{F}json\n@\n{F}\nUse it:\n{F}python\nx = {{'a': 2}}\n{F}\n",
    "prose-of-a-rest": "@\n\nThe rest of the invoice was blank.",
    "comment-before": "// generated\n@",
}


@pytest.mark.parametrize("template", AROUND.values(), ids=AROUND.keys())
def test_what_stands_around_the_answer_is_left_out(template):
    """The value comes out of any wrapping, unchanged and lossless."""
    for value in ({"a": 1}, {"s": "x } ] , ``` <think> // # [1]", "n": [1.0, None, {"b": []}]}):
        parsed = parse_output(template.replace("@", json.dumps(value)))
        assert (parsed.value, parsed.failure) == (value, None)
        assert parsed.lossless
        assert parsed.repairs
        assert {r["grade"] for r in parsed.repairs} <= {"format", "assumed"}


INSIDE: dict[str, tuple[str, Any]] = {
    "extra-closer": ('{"a": true}}', {"a": True}),
    "trailing-commas": ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
    "missing-comma-members": ('{"a": 1 "b": "x"\n"c": 2}', {"a": 1, "b": "x", "c": 2}),
    "missing-comma-objects": ('[{"a": 1}\n{"a": 2}]', [{"a": 1}, {"a": 2}]),
    "double-comma-members": ('{"a": true,, "b": 2}', {"a": True, "b": 2}),
    "leading-comma-member": ('{, "a": 1}', A),
    "missing-colon": ('{"a" 1}', A),
    "equals": ('{"a" = 1}', A),
    "arrow": ('{"a" => 1}', A),
    "double-colon": ('{"a":: 1}', A),
    "single-quotes": ("{'a': 'say \"x\"'}", {"a": 'say "x"'}),
    "apostrophe": ("{'a': 'it's mine', 'b': ['don't']}", {"a": "it's mine", "b": ["don't"]}),
    "smart-quotes": ("{“a”: “it’s”, “b”: ‘c’}", {"a": "it’s", "b": "c"}),
    "half-typographic": ('{"a": "say „no" now", "b": "“x"}', {"a": 'say „no" now', "b": "“x"}),
    "backticks": ("{`a`: `x\ny`}", {"a": "x\ny"}),
    "triple-quotes": ('{"a": """he "x"\nsaid"""}', {"a": 'he "x"\nsaid'}),
    "full-width": ('｛"a"：［1，2］、"b"：＂x＂｝', {"a": [1, 2], "b": "x"}),
    "python-literals": ("{'a': True, 'b': None, 'c': False}", {"a": True, "b": None, "c": False}),
    "literal-case": ('{"a": TRUE, "b": Null}', {"a": True, "b": None}),
    "python-tuple": ("{'a': (1, 2), 'b': (3,), 'c': ()}", {"a": [1, 2], "b": [3], "c": []}),
    "python-list-of-tuples": ("[('a', 1), ('b', 2)]", [["a", 1], ["b", 2]]),
    "pprint-in-dict": ("{'a': 'one '\n      'two',\n 'b': 1}", {"a": "one two", "b": 1}),
    "pprint-in-list": ("['one and two '\n 'and three', 'x']", ["one and two and three", "x"]),
    "pprint-in-parentheses": ("{'a': ('one '\n       'two')}", {"a": "one two"}),
    "comment-slashes": ('{"a": 1, // it\'s {x}\n "b": 2}', {"a": 1, "b": 2}),
    "comment-hash": ('{\n# note\n"a": 1}', A),
    "comment-block": ('{"a": /* "b": */ 1}', A),
    "comment-html": ('{"a": 1 <!-- note -->}', A),
    "unquoted-keys": ("{a: 1, $b: 2, c-d: 3}", {"a": 1, "$b": 2, "c-d": 3}),
    "number-keys": ("{1: 'a'}", {"1": "a"}),
    "unquoted-values": ("{name: Bob, city: New York}", {"name": "Bob", "city": "New York"}),
    "unquoted-mail": ('{"a": b@c.io}', {"a": "b@c.io"}),
    "no-break-space": ('{\u00a0"a":\u00a01}', A),
    "literal-newlines": ('{\\n  "a": 1\\n}', A),
    "raw-newline": ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}),
    "escape-markdown": ('{"a": "b\\_c"}', {"a": "b_c"}),
    "escape-apostrophe": ('{"a": "it\\\'s"}', {"a": "it's"}),
    "escape-regex": ('{"a": "\\d+\\s"}', {"a": "\\d+\\s"}),
    "escape-python-hex": ("{'a': 'b\\xe9'}", {"a": "bé"}),
    "surrogate-pair": ("{'a': '\\ud83d\\ude00'}", {"a": "😀"}),
    "inner-quotes": ('{"a": "he said "hi" twice", "b": 1}', {"a": 'he said "hi" twice', "b": 1}),
    "inner-quotes-at-the-end": ('{"a": "he said "hi"", "b": 1}', {"a": 'he said "hi"', "b": 1}),
    "inner-quotes-and-commas": ('{"a": ""Yes", he said", "b": 1}', {"a": '"Yes", he said', "b": 1}),
    "inner-quotes-in-list": ('["a "b" c", "d"]', ['a "b" c', "d"]),
    # Two of json_repair's own cases (MIT).
    "inner-attributes": ('{"a": "<h3 id="aaa">x</h3>"}', {"a": '<h3 id="aaa">x</h3>'}),
    "inner-quotes-of-html": ('["<b class="x y">hi</b>", "z"]', ['<b class="x y">hi</b>', "z"]),
    "html-entities-named": ("{&quot;a&quot;: &quot;&eacute;&quot;}", {"a": "é"}),
    "html-entities-indented": ("{\n&nbsp;&nbsp;&quot;a&quot;: 1\n}", A),
    "walrus": ('{"a" := 1}', A),
    "comment-with-address": ('["a", // see https://x.y/z\n "b"]', ["a", "b"]),
    "template-strings": ('{"a": `5`, "b": `x y`}', {"a": "5", "b": "x y"}),
    "html-entities": ("{&quot;a&quot;: &quot;b &amp; c&quot;}", {"a": "b & c"}),
    "zero-width-inside": ('{\u200b"a":\u200b \u2060"x", "b": [1\u200b]}', {"a": "x", "b": [1]}),
    "escape-pattern": ('{"a": "\\d{3}\\-\\w"}', {"a": "\\d{3}\\-\\w"}),
    "escape-hex": ('{"a": "\\x41"}', {"a": "A"}),
    "markdown-value": ('{"a": **5**, "b": *"x"*}', {"a": 5, "b": "x"}),
    "markdown-key": ('{**"a"**: 1}', A),
    "python-prefix": ("{u'a': u'x'}", {"a": "x"}),
    "python-prefix-in-list": ("{u'a': [1, u'x y', None]}", {"a": [1, "x y", None]}),
    "parentheses": ('{"a": (1)}', A),
    "equals-bare-keys": ("{a = 1}", A),
    "comment-annotating": ('{"a": 1, // your age, the same unit\n "b": 2}', {"a": 1, "b": 2}),
    "equal-documents-with-commas": ("{},{},{}", [{}, {}, {}]),
    "concatenation": ('{"a": "b" + "c" +\n "d"}', {"a": "bcd"}),
    "json-in-a-string": ('"{\\"a\\": 1}"', A),
    "escaped-document": ('{\\"a\\": {\\"b\\": \\"c\\\\n\\"}}', {"a": {"b": "c\n"}}),
    "doubled-braces": ('{{"a": {{"b": 1}}}}', {"a": {"b": 1}}),
    "doubled-braces-in-a-list": ('[{{"a": 1}}, {{"b": 2}}]', [{"a": 1}, {"b": 2}]),
    "hex-octal-binary": ('{"a": 0x1F, "b": 0o17, "c": 0b11}', {"a": 31, "b": 15, "c": 3}),
    "plus-and-points": ('{"a": +1, "b": .5, "c": 5.}', {"a": 1, "b": 0.5, "c": 5.0}),
    "underscores": ('{"a": 1_000}', {"a": 1000}),
    "thousands": ('{"a": 1,234,567, "b": 1}', {"a": 1234567, "b": 1}),
    "infinity": ('{"a": -Infinity}', {"a": -math.inf}),
    "json-lines": ('{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}]),
    "concatenated": ('{"a": 1}{"a": 2}, {"a": 3}', [{"a": 1}, {"a": 2}, {"a": 3}]),
    "agreeing-duplicate": ('{"a": 1, "a": 1,}', A),
    "missing-opener": ('"a": 1, "b": 2}', {"a": 1, "b": 2}),
    "missing-closer-in-tag": ('<json>{"a": 1</json>', A),
    "missing-opening-quote": ('{"first": some words", "b": 2}', {"first": "some words", "b": 2}),
    "missing-key-quotes": ('{first": 1, "b": 2}', {"first": 1, "b": 2}),
    "missing-object-closer": ('[{"a": 1, "b": 2]', [{"a": 1, "b": 2}]),
    "mismatched-closer": ('{"a": [1, 2}, "b": 3}', {"a": [1, 2], "b": 3}),
    "extra-closer-before-prose": ('{"a": {"b": 1}}}\nLet me know.', {"a": {"b": 1}}),
    "extra-closer-of-a-short-document": (
        '{"a":{"b":false,"c":"Omar"},"d":null}}',
        {"a": {"b": False, "c": "Omar"}, "d": None},
    ),
    "byte-order-mark-and-bare-keys": (
        "\ufeff{\n  a=null,\n  b={\n    c=1\n  }\n}",
        {"a": None, "b": {"c": 1}},
    ),
    "missing-quote-before-members": (
        '{"first": "some words, "doc": {"b": 1.0, "c": "one two", "d": "three"}}',
        {"first": "some words", "doc": {"b": 1.0, "c": "one two", "d": "three"}},
    ),
    "missing-quote-of-a-key": (
        '{"first": "some words", doc": {"b": 1}}',
        {"first": "some words", "doc": {"b": 1}},
    ),
    "missing-list-closer": (
        '{"list": ["a", "b", "c", "doc": {"d": [1, null], "e": 1e-07}, "end": 1}',
        {"list": ["a", "b", "c"], "doc": {"d": [1, None], "e": 1e-07}, "end": 1},
    ),
    "missing-inner-opener": ('{"a": 1, 2], "b": 3}', {"a": [1, 2], "b": 3}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), INSIDE.values(), ids=INSIDE.keys())
def test_one_reading_is_read(text, value):
    """A document with one reading is read, and its repair is reported."""
    parsed = parse_output(text)
    assert (repr(parsed.value), parsed.failure) == (repr(value), None)
    assert parsed.repairs
    assert parsed.lossless


def test_members_on_the_line_of_the_bracket_are_a_habit():
    """`pprint` writes all containers so, and strings with an apostrophe in the other quotes."""
    lines = ["it's lorem ipsum " * 3, "ipsum"]
    value = {"m": " ".join(lines), "d": {f"k{i}": [{"a": [i, i + 1]}, "x" * 60] for i in range(12)}}
    assert parse_output(pprint.pformat(value, sort_dicts=False, width=60)).value == value


@pytest.mark.parametrize(("text", "value"), INSIDE.values(), ids=INSIDE.keys())
def test_two_modes_at_once(text, value):
    """The same documents are read inside a fence with prose around."""
    parsed = parse_output(f"Here you are:\n\n```json\n{text}\n```\nBye!")
    assert repr(parsed.value) == repr(value)


def test_nan_is_read_as_a_float_and_reported():
    """`NaN` is no JSON: it is not passed on without a word."""
    parsed = parse_output('{"a": NaN}')
    assert math.isnan(parsed.value["a"])
    assert [r["kind"] for r in parsed.repairs] == ["non_finite"]
    assert not parse_output('{"a": NaN}', "minimal").ok


@pytest.mark.parametrize("value", [{}, [], [1, 2]])
@pytest.mark.parametrize("template", ["\ufeff@", "\u200b@\u2060", "```\n@\n```", "```json\n@"])
def test_what_is_read_at_a_level_is_read_at_the_next(template, value):
    """Also brackets that would only be mentioned in a sentence."""
    text = template.replace("@", json.dumps(value))
    for level in ("minimal", "standard", "aggressive"):
        assert parse_output(text, level).value == value


@pytest.mark.parametrize("quote", ['\\"', "&quot;"])
def test_a_masked_document_is_read_whatever_its_length(quote):
    """Escapes are resolved in steps; where a step ends, the document does not."""
    for length in range(0, 1000, 3):
        value = {"city": "x" * length, "lines": [None, 2024, -2.5], "total": 1e-07, "paid": True}
        read = parse_output(json.dumps(value).replace('"', quote), complete=True)
        assert read.value == value


def test_a_finished_answer_may_lack_its_last_bracket():
    """The finish reason is evidence enough for one closing bracket, and for no more."""
    assert parse_output('{"a": 1', complete=True).value == A
    assert parse_output('{"a": [1', complete=True).ok is False
    assert parse_output('```\n{"a": 1\n', complete=False).ok is False
