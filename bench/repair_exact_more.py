"""More modes of damage from which syntax alone gives the value back."""

import json
import math
import random
import re
from typing import Any

from bench.repair_documents import dump, leaves, with_text, write
from bench.repair_exact import EXACT, Made, exact

IDENTIFIER = re.compile(r"[A-Za-z]\w*\Z")


def commented(*comments: str) -> Any:
    """Return a mode that adds comments at line ends."""

    def mode(rng: random.Random, value: Any) -> Made:
        text = json.dumps(value, indent=2, ensure_ascii=False)
        lines = text.split("\n")
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(lines) - 1)
            lines[place] += " " + rng.choice(comments)
        return "\n".join(lines), value

    return mode


EXACT["comment_slashes"] = commented("// the user's id", '// see above, "quoted"', "// {x}")
EXACT["comment_hash"] = commented("# a note", "# it's the name")
EXACT["comment_block"] = commented("/* value */", "/* it's\n two lines */")


@exact("comment_own_line")
def _(_: random.Random, value: Any) -> Made:
    text = json.dumps(value, indent=2)
    return "// generated\n" + text.replace("\n", "\n  // field\n", 1) + "\n# end", value


@exact("unquoted_keys")
def _(rng: random.Random, value: Any) -> Made:
    return write(value, json.dumps, str, indent=rng.choice([None, 2])), value


@exact("unquoted_values")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(rng, value, rng.choice(["hello", "Ana", "pending", "New York"]))
    plain = {"hello", "Ana", "pending", "New York"}
    spell = lambda v: v if isinstance(v, str) and v in plain else json.dumps(v)  # noqa: E731
    return write(value, spell, rng.choice([str, json.dumps])), value


@exact("smart_quotes")
def _(_: random.Random, value: Any) -> Made:
    if any(isinstance(v, str) and re.search(r"[\"“”\\\n\t]", v) for v in leaves(value)):
        return None
    spell = lambda v: f"“{v}”" if isinstance(v, str) else json.dumps(v)  # noqa: E731
    return write(value, spell, lambda k: f"“{k}”"), value


@exact("full_width")
def _(rng: random.Random, value: Any) -> Made:
    return write(value, json.dumps, colon="：", comma=rng.choice(["，", ","])), value


@exact("nbsp")
def _(_: random.Random, value: Any) -> Made:
    if any(isinstance(v, str) and ("\n" in v or "  " in v) for v in leaves(value)):
        return None
    return json.dumps(value, indent=2).replace("  ", "\u00a0\u00a0"), value


@exact("literal_newlines")
def _(_: random.Random, value: Any) -> Made:
    return json.dumps(value, indent=2).replace("\n", "\\n"), value


@exact("raw_newline")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(rng, value, "first line\nsecond line\n\nlast, with {braces}")
    return (dump(rng, value).replace("\\n", "\n"), value) if "C:" not in str(value) else None


@exact("raw_tab")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(rng, value, "a\tb\x01c")
    return json.dumps(value).replace("\\t", "\t").replace("\\u0001", "\x01"), value


@exact("escape_markdown")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(rng, value, "snake_case_name")
    return json.dumps(value).replace("snake_case_name", r"snake\_case\_name"), value


@exact("escape_apostrophe")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(rng, value, "it's here")
    return json.dumps(value).replace("it's here", r"it\'s here"), value


@exact("escape_regex")
def _(rng: random.Random, value: Any) -> Made:
    pattern = rng.choice([r"\d+-\w*", r"\s+", r"\alpha", r"C:\Windows\System32"])
    value = with_text(rng, value, pattern)
    return json.dumps(value).replace(json.dumps(pattern)[1:-1], pattern), value


@exact("inner_quotes")
def _(rng: random.Random, value: Any) -> Made:
    inner = rng.choice(
        [
            'He said "hi" to me',
            'the "best" one',
            '"Yes", she said',
            'call it "x, y" or "z"',
            'a "b"',
        ]
    )
    value = with_text(rng, value, inner)
    return json.dumps(value).replace(json.dumps(inner)[1:-1], inner), value


@exact("inner_quotes_list")
def _(rng: random.Random, value: Any) -> Made:
    inner = rng.choice(['He said "hi" to me', 'the "best" one'])
    value = {"list": ["first", inner, "last"], "doc": value}
    return json.dumps(value).replace(json.dumps(inner)[1:-1], inner), value


@exact("concatenation")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(rng, value, "one two three")
    joined = rng.choice(['"one " + "two three"', '"one "\n  + "two"\n  + " three"'])
    return json.dumps(value).replace('"one two three"', joined), value


@exact("json_in_string")
def _(rng: random.Random, value: Any) -> Made:
    return json.dumps(dump(rng, value)), value


@exact("escaped_document")
def _(rng: random.Random, value: Any) -> Made:
    return json.dumps(dump(rng, value))[1:-1], value


@exact("doubled_braces")
def _(_: random.Random, value: Any) -> Made:
    text = json.dumps(value)
    if any(isinstance(v, str) and re.search(r"[{}]", v) for v in leaves(value)):
        return None
    return text.replace("{", "{{").replace("}", "}}"), value


def spelled(number: float, *spellings: str) -> Any:
    """Return a mode that writes one number in another spelling."""

    def mode(rng: random.Random, value: Any) -> Made:
        value = {"n": number, "doc": value, "list": [1, 2]}
        return json.dumps(value).replace(json.dumps(number), rng.choice(spellings), 1), value

    return mode


EXACT["number_hex"] = spelled(31, "0x1F", "0x1f", "0X1F")
EXACT["number_plus"] = spelled(5, "+5")
EXACT["number_dot"] = spelled(0.5, ".5", "+.5")
EXACT["number_trailing_dot"] = spelled(5.0, "5.")
EXACT["number_underscore"] = spelled(1000000, "1_000_000")
EXACT["number_thousands"] = spelled(1234567, "1,234,567")
EXACT["nan"] = spelled(math.nan, "NaN", "nan")
EXACT["infinity"] = spelled(-math.inf, "-Infinity", "-inf")


@exact("missing_closer_complete")
def _(_: random.Random, value: Any) -> Made:
    return json.dumps(value, indent=2)[:-1].rstrip(), value, True


@exact("missing_closer_fence")
def _(_: random.Random, value: Any) -> Made:
    return "```json\n" + json.dumps(value, indent=2)[:-1].rstrip() + "\n```", value


@exact("missing_opener")
def _(rng: random.Random, value: Any) -> Made:
    return (dump(rng, value)[1:], value) if isinstance(value, dict) else None


@exact("missing_inner_bracket")
def _(_: random.Random, value: Any) -> Made:
    value = {"list": ["a", "b", "c"], "doc": value, "end": 1}
    return json.dumps(value).replace('"c"]', '"c"'), value


@exact("mismatched_closer")
def _(_: random.Random, value: Any) -> Made:
    value = {"list": ["a", "b", "c"], "doc": value, "end": 1}
    return json.dumps(value).replace('"c"]', '"c"}'), value


@exact("missing_quote")
def _(rng: random.Random, value: Any) -> Made:
    value = {"first": "some words", "doc": value}
    text = json.dumps(value)
    return text.replace(
        *rng.choice([('words"', "words"), ('"some', "some"), ('"doc"', 'doc"')])
    ), value


@exact("json_lines")
def _(_: random.Random, value: Any) -> Made:
    if not isinstance(value, list):
        value = [{"n": 1, "doc": value}, {"n": 2}]
    return "\n".join(map(json.dumps, value)), value


@exact("concatenated")
def _(rng: random.Random, value: Any) -> Made:
    value = [{"n": 1, "doc": value}, {"n": 2}, {"n": 3}]
    return rng.choice(["", " ", ", ", "\n\n"]).join(map(json.dumps, value)), value


@exact("valid")
def _(rng: random.Random, value: Any) -> Made:
    return dump(rng, value), value


@exact("duplicate_key_agreeing")
def _(_: random.Random, value: Any) -> Made:
    return '{"n": 1, "doc": ' + json.dumps(value) + ', "n": 1,}', {"n": 1, "doc": value}
