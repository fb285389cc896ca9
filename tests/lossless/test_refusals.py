"""What the reader refuses: better no value than a wrong one."""

import json

import pytest

from graph_retry.lossless import read as parse_output

F = "```"

REFUSED: dict[str, list[str]] = {
    "truncated": [
        '{"a": "x\t}',
        '{\n  "a": "so,\n}',
        '{ "x": {"d": "note 3}"\n}',
        '{"a": 1, "b": 2',
        '{"a": "x',
        "[1, 2, 3",
        '{"a": [1, 2]',
        '{"a": 1,',
        '{"a"',
        "{",
        '{"a": 1 /* note',
        '{"a": """x',
        '<think>Maybe {"a": 1}?',
        "[1, ]null",
        '{"a": "b" + c}',
    ],
    "elided": [
        '[{"id": 1},\n // existing users unchanged\n {"id": 9}]',
        '[{"id": 1}, /* users 2..98 */ {"id": 99}]',
        '{"a": 1, // other fields as in the input\n "z": 2}',
        '{"a": 1 // b and c stay the same\n}',
        '{"a": 1, # see previous answer for b\n "c": 3}',
        '[{"id": 1},\n// (users two and three go here)\n{"id": 4}]',
        "[1,\n// ditto\n5]",
        "[1, 2,\n// 1000 lines collapsed\n]",
        '{"text": "x", // rest of text cut\n "n": 1}',
        '{"a": [1, 2, 3] /* first 3 only */}',
        '{"config": { /* unchanged */ }}',
        "[1, 2, ...]",
        '{"a": 1, …}',
        '{"a": ...}',
        '{"a": [1, 2 /* 97 more */]}',
        '{"a": [1, // rest omitted\n]}',
        '[{"a": 1}, <remaining items>]',
        '[{"a": 1}, [truncated]]',
        '[1, {"a": 1}, and so on]',
        '{"a": }',
        '{"a": , "b": 1}',
        "[1, , 2]",
        "[, 1]",
        '{"a": <name>}',
        '{"a": YOUR_NAME}',
        '{"a": [1]}\n(97 more items omitted)',
        '{"a": 1}\n...',
    ],
    "ambiguous": [
        "[][]",
        '[{"name": "Rome"}, true, ][]',
        "[null, false[]]",
        '"b"{: 1000}\n{"b": "Rome"}\n{"b": "tab"}',
        '{\n  "a": [\n    "x"\n  ,\n  "b": [\n  }\n}',
        '{"note": fixes issue #42,\n "b": 1}',
        '[\n&quot;", 1]',
        "{'a': {1, 2}}",
        "{'a': datetime.date(2024, 1, 1)}",
        '{"a": {{"k}": 2}}',
        '[["two words"] [ "a" , true]',
        '{"a": "}',
        '```json\n{"a": "x\n```',
        "{,}",
        "{'a': 'one '\n      'two '\n      : 'three'}",
        "['one '\n 'two '\n ,'three'\n None]",
        '{"a": 1}\n{: 2}',
        '{.a": 1}\n{"a": 2}\n{"a": 3}',
        '[ "a"\n+ "b"\n]',
        '{\\"a\\": 1, \\first\\": 2}',
        '{"a":="="}',
        '[{a: "L", b: "New York@}, {c: -1, "two words": ":"}]',
        '[\n  42 // see \n"a"\n]',
        '/* 1 */\n{"a": 1}\n\n/* 2 */\n{"a": 1}',
        '- {"a": 1}\n- {"a": 1}',
        '{"a": 1}\n---\n{"a": 1}',
        'Item 1:\n{"a": 1}\nItem 2:\n{"a": 1}',
        '<call>{"a": 1}</call>\n<call>{"a": 1}</call>',
        'f({"a": 1}, {"b": 2})',
        '\n  1000 /* value */ // see "a"\n[]',
        '"let x = {a: 1};" [ ]',
        '{age}: -1, city: {city: 5, tags: "x"}',
        '{"a": "x" wide", "b": 1}',
        '{"a": fals", "b": "x"}',
        '{"name": "Ann, age: "5", city: "Rome"}',
        '["S""M","L"]',
        '["5", "OK“, "naïve", "“smart”"]',
        '{""color": "x"}',
        '{"k"" "v"}',
        '{"a": "b" "c"}',
        '{"color": "bridge""}',
        '["New York," null]',
        "{'a': 'x' 'y'}",
        '{"a": 1}{"a": 1}',
        '{"a": 1, "a": 2}',
        '{"a": 1} and then {"a": 2}',
        '```\n{"a": 1}\n```\nor\n```\n{"a": 2}\n```',
        '["she said "no", "maybe" and left"]',
        '{"a": "C:\\Users\\new"}',
        "[100 200]",
        '["a" "a"]',
        '{"a": [1}',
        '{u"serId": 1, "b": 2}',
        "[1, '‘single’]",
        'id: {city: false}{, "x-y": "the rest"}',
        "result = {'x': ['q'], 'o': '—'] 'lines': '{a'}",
        '[{}} \\"[start\\"]',
        '{\\"a\\": 1}, {\\"[b\\": 2}]',
        "{tags: {a: 1, ]ags: 42}}",
        '[\n    "n",\n   # "x"\n]',
        '\n  true,\n  "Ann"  <!-- hi -->\n[]',
        '[true), "x"]',
        ' "Paris"\n, 12\n[]',
        '{ "a": 1\n, "b": [2, "!]"\n, "c": 3\n}',
        "[\n  1,\n  #0\n]",
        '{"two words": {// no"\n}}',
        '["x", // no"\n]',
        '{"a": 1, {"k}": 2}}',
        '{{"k}": 2}',
        '["he said \\"no\\\\", then left.", 1]',
        '{i\': false, "k:v": 123456}',
        '{"ratio": 50 // 7,\n "b": 1}',
        '{"a": 1, // note    "b": 2,\n "c": 3}',
        '{"area": 10²}',
        "[1e400]",
        "[123.456e-789]",
        "{'a': b'x'}",
        '{"a": 0123}',
        '{"a": [1,000]}',
        '{"a": #fff}',
        '[["a": 1]]',
    ],
    "no_json": [
        "User(n=1, tags=['x', 'y'])",
        '[][start", "x"]',
        '{}\\"@id\\": \\"x\\"',
        '[U"SD"]',
        "",
        "   \n",
        "The weather is fine.",
        "As [1] and [2, 3] show, it is.",
        "Use [] or {} here.",
        "name: Bob\ntags: [a, b]\n",
        'name: Bob\ntags: ["a", "b"]\n',
        '[section]\nname = "x"\ntags = ["a", "b"]\n',
        "name,age\nBob,3\n",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "<a><b>x</b></a>",
        "Dear {name}, {{greeting}}",
        "The set {1, 2, 3} is finite.",
        'def f():\n    return {"a": 1}',
        "function f() { return 1; }",
        "body { color: red; }",
        "[insert answer here]",
        "I'm sorry, but I can't help with that.",
        "As an AI, I cannot do this.",
        "n: true, data: [404]}",
    ],
    "syntax": [
        '[\\"A\\A\\", 1]',
        '[\\"\\u٠٠٠٠\\"]',
        "/* 1 */\n{},\n/* 2 */\n{}",
        'b: {c: "x"}, tags{: "L"}',
        'Set it to "[]" by default.',
        '[10.0], "https://a.b/[2]"',
        "\"data: ['Mon', 1]}",
        '[1.5, false], \\"red\\"',
        "<a>[]-5</a>",
        "{'a': pending}",
        "{'a': Ellipsis}",
        '{"a": 1}.b',
        "{'a': not True}",
        "{'a': tru}",
        "{'a': x if y else z}",
        "{'a': user_name}",
        "{'name': name}",
        '[]\n"x"',
        '{"a": undefined}',
        '{"a": yes}',
        '{"a": 1} , "b": 2}',
        'fetch(url, {"method": "POST"})',
    ],
    "too_deep": [
        "[" * 5_000,
        '{"a":' * 5_000,
        "[" * 5_000 + "1" + "]" * 5_000,
    ],
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in REFUSED.items() for text in texts]
)
def test_doubt_is_a_refusal(kind, text):
    """A text with no reading or several gives no value, and says what is wrong where."""
    parsed = parse_output(text)
    assert (parsed.ok, parsed.value, parsed.text, parsed.lossless) == (False, None, text, False)
    assert parsed.failure is not None
    assert parsed.failure["kind"] == kind
    assert 0 <= parsed.failure["position"] <= len(text)
    assert parsed.failure["message"].endswith(".")
    assert len(parsed.failure["excerpt"]) <= 80


@pytest.mark.parametrize(
    "around", ["", "0.5, " * 100, "1.25e-7, " * 100], ids=["alone", "many", "small"]
)
@pytest.mark.parametrize(
    "wrap", ["[%s1.5]", f"Here:\n{F}json\n[%s1.5]\n{F}"], ids=["strict", "fenced"]
)
def test_a_number_is_in_range_however_many_there_are(around, wrap):
    """Among many floats, which are not checked one by one, none becomes infinite, or zero."""
    zeros = "0" * 400
    for number in (
        "1e309",
        "-2.5E+400",
        "1e-400",
        f"1{zeros}.0",
        f"0.{zeros}1",
        f"{'9' * 250}e99",
    ):
        refused = parse_output(wrap % f"{around}{number}, ")
        assert (refused.ok, refused.value) == (False, None), number
    for number in ("1.7e308", "5E-324", "0e999", "0e-999", f"0.{zeros}", f"1.5{zeros}", "1" * 250):
        parsed = parse_output(wrap % f"{around}{number}, ")
        assert parsed.value == json.loads(f"[{around}{number}, 1.5]"), number


def test_an_empty_object_may_be_what_is_left_of_a_value():
    """A bracket too many may stand in the place of a value, also with a comment behind it."""
    for comment in ("", " # a name", " // a name", " /* a name */"):
        text = f'{{\n  "a": {{\n    "b": {{\n  }}{comment}\n}}'
        assert not parse_output(text, complete=True).ok, comment


def test_a_list_of_numbers_in_a_sentence_is_an_answer_where_it_is_called_one():
    """Numbers in brackets are citations unless the sentence says what they are."""
    assert parse_output("My answer is [1, 2, 3].").value == [1, 2, 3]
    assert not parse_output("As [1, 2, 3] show, it is.").ok


def test_an_ellipsis_inside_a_string_is_data():
    """Three dots are an elision only outside of strings."""
    assert parse_output("{'a': 'wait...', 'b': ['...']}").value == {"a": "wait...", "b": ["..."]}


def test_cut_off_json_lines_are_refused_where_the_model_was_stopped():
    """Whole lines tell nothing about the lines that were not written."""
    text = '{"a": 1}\n{"a": 2}\n'
    assert parse_output(text).value == [{"a": 1}, {"a": 2}]
    refused = parse_output(text, complete=False).failure
    assert refused is not None
    assert refused["kind"] == "truncated"
