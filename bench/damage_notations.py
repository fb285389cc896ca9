"""Documents to damage in notations that are read as JSON, from JSON5 to Python's `pprint`."""

import html
import json
import pprint
import random
import re
from collections.abc import Callable
from typing import Any

from bench.damage_documents import Intact, bare, in_single_quotes, tree

WORDS = [
    "blue", "Müller", "São Paulo", "12 Main St.", "n/a", "to-do", "Q3", "A", "b", "z9", "7", "0.75",
    "on", "yes", "No", "TRUE", "nil", "-5", "+1", "1/2", "50%", "€20", "#7", "@me", "C++", "x*y",
    "a|b", "k=v", "p: q", "m, n", "(see note)", "[x]", "{y}", "<z>", "we're", "rock 'n' roll",
    'the "big" one', "back\\slash", "two\nlines", "tab\there", "…", "—", "“q”", "me@x.org",
    "http://x.org/a#b", "2025-12-31", "23:59", "", "  ", "_", "__init__", "a.b", "a/b/c", "//",
    "/*", "*/", "#", "null", "false", "1e3", "0xff", "١٢", "É", "ß", "日本", "🙂", "end,", "end:",
    "end}", "end]", "{", "[", ":", "/",
]  # fmt: skip
KEYS = [
    "id", "title", "first", "last", "unit price", "qty", "is-new", "a1", "b_2", "Ünï", "№", "x.y",
    "q?", "$", "_k", "T", "f", "10", "3rd", "key,", "k'k", "[0]", "#", "//", "", "note", "then",
]  # fmt: skip
COMMENTS = [
    "// ok", "// first one", "# per unit", "/* cm */", "// in %, net", "# it's fine", "// e.g. 5",
    "/* see docs: x */",
]  # fmt: skip
COMMENT_LINES = ["// the name", "# id of the user", "/* size, color */"]

Write = Callable[[Any], str]


def in_template(value: Any) -> str:
    """Write a string between backticks, as JavaScript may."""
    if not isinstance(value, str):
        return json.dumps(value)
    return "`" + value.replace("\\", "\\\\").replace("`", "\\`") + "`"


def in_smart_quotes(value: Any) -> str:
    """Write a string in the quotes that word processors use."""
    inside = json.dumps(value, ensure_ascii=False)
    return f"“{inside[1:-1]}”" if isinstance(value, str) else inside


def key_of_javascript(key: str) -> str:
    """Write a key without quotes where JavaScript needs none."""
    return key if re.fullmatch(r"[A-Za-z_$][A-Za-z\d_$]*", key) else in_single_quotes(key)


def on_one_line(
    value: Any, scalar: Write, key: Write, colon: str = ": ", last: str = "", doubled: int = 1
) -> str:
    """Write a document on one line, with `last` before its closing brackets."""
    if not isinstance(value, (dict, list)):
        return scalar(value)

    def inner(child: Any) -> str:
        return on_one_line(child, scalar, key, colon, last, doubled)

    if isinstance(value, dict):
        members = [key(name) + colon + inner(child) for name, child in value.items()]
        return "{" * doubled + ", ".join(members) + last * bool(members) + "}" * doubled
    return "[" + ", ".join(map(inner, value)) + last * bool(value) + "]"


def over_lines(
    rng: random.Random, value: Any, scalar: Write, key: Write, last: str, indent: str = "\n"
) -> str:
    """Write a document over lines, with comments beside its members and before them."""
    if not value or not isinstance(value, (dict, list)):
        return scalar(value)
    pairs = list(value.items()) if isinstance(value, dict) else [("", child) for child in value]
    text = "{" if isinstance(value, dict) else "["
    for index, (name, child) in enumerate(pairs):
        text += f"{indent}  {rng.choice(COMMENT_LINES)}" if rng.random() < 0.1 else ""
        label = f"{key(name)}: " if isinstance(value, dict) else ""
        text += f"{indent}  {label}{over_lines(rng, child, scalar, key, last, indent + '  ')}"
        text += "," if index < len(pairs) - 1 else last
        text += f" {rng.choice(COMMENTS)}" if rng.random() < 0.3 else ""
    return text + indent + ("}" if isinstance(value, dict) else "]")


def as_tuples(value: Any) -> str:
    """Write lists as tuples of Python, within a dictionary."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {as_tuples(child)}" for k, child in value.items()) + "}"
    if isinstance(value, list):
        return "(" + "".join(f"{as_tuples(child)}, " for child in value).rstrip(" ") + ")"
    return repr(value)


def noted(rng: random.Random) -> Intact:
    """Make one document in one of many notations."""
    words, keys = rng.choice([(WORDS, KEYS), (WORDS[:24], KEYS[:12]), (WORDS, KEYS[:8])])
    value = None
    while not value:
        value = tree(rng, rng.choice([0, 1, 2]), words, keys)
    last = rng.choice(["", ","])
    dump = json.dumps(value, ensure_ascii=False)
    shapes = {
        "json5": on_one_line(value, in_single_quotes, key_of_javascript, last=last),
        "json5 lines": over_lines(rng, value, in_single_quotes, key_of_javascript, last),
        "jsonc": over_lines(rng, value, json.dumps, json.dumps, last),
        "last comma": on_one_line(value, json.dumps, json.dumps, last=","),
        "smart quotes": on_one_line(value, in_smart_quotes, in_smart_quotes),
        "templates": on_one_line(value, in_template, key_of_javascript),
        "double braces": on_one_line(value, json.dumps, json.dumps, doubled=2),
        "equals": on_one_line(value, json.dumps, bare, colon=rng.choice([" = ", "="])),
        "arrows": on_one_line(value, json.dumps, json.dumps, colon=" => "),
        "pprint": pprint.pformat(value, width=rng.choice([20, 40, 60]), sort_dicts=False),
        "html": html.escape(dump),
        "twice encoded": json.dumps(dump),
        "closed on the same line": re.sub(r"\n([}\]])", r"\1", json.dumps(value, indent=2)),
    }
    if isinstance(value, dict):
        shapes["tuples"] = as_tuples(value)
    shape = rng.choice(list(shapes))
    return Intact(shape, shapes[shape], value)


def as_json(shape: str, text: str) -> str:
    """Write a text with the marks of JSON for those of its notation, to see what is left of it."""
    if shape in {"templates", "smart quotes"}:
        text = text.replace('"', "'").replace("\\`", "").replace("\\'", "")
        text = text.replace("\n", " ").replace("\t", " ")
    marks = {
        "templates": {"`": '"'}, "smart quotes": {"“": '"', "”": '"'}, "arrows": {"=>": ":"},
        "equals": {"=>": ":", "=": ":"}, "double braces": {"{{": "{", "}}": "}"},
        "tuples": {"(": "[", ",)": "]", ")": "]"}, "twice encoded": {'\\"': '"'},
    }  # fmt: skip
    for mark, plain in marks.get(shape, {}).items():
        text = text.replace(mark, plain)
    text = text[1:-1] if shape == "twice encoded" else text
    return html.unescape(text) if shape == "html" else text
