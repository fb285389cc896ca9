"""Modes in which other marks stand between or around the data, and give the value back."""

import html
import json
import random
import re
from typing import Any

from bench.repair_documents import dump, with_text, write
from bench.repair_exact import EXACT, F, Made, exact

ANNOTATIONS = [
    "your age", "the same unit as above", "more than two", "in EUR, other currencies are rounded",
    "user's further name", "first of 3 items", "optional", "ISO 4217", "see the invoice, page 2",
    "not the date of the order", "up to two digits", "taken from the header",
]  # fmt: skip
OTHER_FENCES = [
    f"{F}python\nimport json\nprint(json.loads(text)['name'])\n{F}",
    f"{F}bash\ncurl -d '{{\"a\": 1}}' https://example.com\n{F}",
    f"{F}text\nname: Ana, tags: [a, b]\n{F}",
    f"{F}sql\nSELECT name FROM users WHERE id IN (1, 2);\n{F}",
]
ZERO_WIDTH = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff"]


@exact("html_entities")
def _(rng: random.Random, value: Any) -> Made:
    return html.escape(dump(rng, value), quote=True), value


@exact("html_entities_numeric")
def _(rng: random.Random, value: Any) -> Made:
    text = dump(rng, value).replace("&", "&#38;").replace('"', rng.choice(["&#34;", "&#x22;"]))
    return f"<pre>{text}</pre>", value


@exact("fences_in_other_languages")
def _(rng: random.Random, value: Any) -> Made:
    blocks = [f"{F}json\n{dump(rng, value)}\n{F}", rng.choice(OTHER_FENCES)]
    rng.shuffle(blocks)
    return f"First this:\n\n{blocks[0]}\n\nand then:\n\n{blocks[1]}\n", value


@exact("fences_alike")
def _(rng: random.Random, value: Any) -> Made:
    pretty = json.dumps(value, indent=2)
    return f"{F}json\n{dump(rng, value)}\n{F}\n\nFormatted:\n\n{F}json\n{pretty}\n{F}", value


@exact("zero_width_inside")
def _(rng: random.Random, value: Any) -> Made:
    mark = rng.choice(ZERO_WIDTH)
    text = write(value, json.dumps, colon=rng.choice([f":{mark} ", f": {mark}", f"{mark}: "]))
    return text.replace("{", "{" + mark, 1), value


@exact("zero_width_after_comma")
def _(rng: random.Random, value: Any) -> Made:
    return write(value, json.dumps, comma="," + rng.choice(ZERO_WIDTH)), value


@exact("escape_invalid")
def _(rng: random.Random, value: Any) -> Made:
    inner = rng.choice([r"\w+@\w+\.com", r"^\d{3}\-\d{4}$", r"\s*\(x\)", r"a\|\d", r"\alpha_1"])
    value = with_text(rng, value, inner)
    return json.dumps(value).replace(json.dumps(inner)[1:-1], inner), value


@exact("escape_hex")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(rng, value, "café A")
    return json.dumps(value).replace("caf\\u00e9 A", r"caf\xe9 \x41"), value


@exact("escape_line_end")
def _(rng: random.Random, value: Any) -> Made:
    value = with_text(rng, value, "one two")
    return json.dumps(value).replace('"one two"', '"one \\\ntwo"'), value


@exact("markdown_values")
def _(rng: random.Random, value: Any) -> Made:
    mark = rng.choice(["**", "*", "__", "***"])
    value = {"total": rng.choice([42, 3.5, "Ana", True]), "doc": value}
    total = json.dumps(value["total"])
    return json.dumps(value).replace(f": {total},", f": {mark}{total}{mark},", 1), value


@exact("markdown_keys")
def _(_: random.Random, value: Any) -> Made:
    return write(value, json.dumps, lambda key: f"**{json.dumps(key)}**", indent=2), value


@exact("markdown_around")
def _(rng: random.Random, value: Any) -> Made:
    return rng.choice(["**@**", "> @", "**Result:** `@`"]).replace("@", json.dumps(value)), value


@exact("comment_annotating")
def _(rng: random.Random, value: Any) -> Made:
    lines = json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    members = [number for number, line in enumerate(lines) if re.search(r"[\w\"],?$", line)]
    for number in rng.sample(members, min(len(members), 2)):
        lines[number] += rng.choice([" // ", " # ", "  // "]) + rng.choice(ANNOTATIONS)
    return "\n".join(lines), value


@exact("comment_annotating_block")
def _(rng: random.Random, value: Any) -> Made:
    value = {"age": 3, "doc": value}
    note = f"/* {rng.choice(ANNOTATIONS)} */"
    return json.dumps(value).replace(
        '"age": 3', rng.choice([f'"age": 3 {note}', f'"age": {note} 3'])
    ), value


@exact("equals_bare_keys")
def _(rng: random.Random, value: Any) -> Made:
    return write(value, json.dumps, str, colon=rng.choice([" = ", "="]), indent=2), value


@exact("equals_once")
def _(_: random.Random, value: Any) -> Made:
    return re.sub(r"(\"\w+\"): ", r"\1 = ", json.dumps(value), count=1), value


@exact("python_prefix")
def _(_: random.Random, value: Any) -> Made:
    return write(
        value, lambda v: "u" * isinstance(v, str) + repr(v), lambda key: f"u'{key}'"
    ), value


assert EXACT["html_entities"]
