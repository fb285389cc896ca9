"""Documents of many shapes to damage, with words and keys that look like structure."""

import json
import random
import re
from dataclasses import dataclass, replace
from typing import Any

from bench.repair_documents import write

WORDS = [
    "a", "x", "red", "Ann", "Rome", "New York", "true", "null", "None", "5", "3.5", "", " ",
    "two words", "end.", "a, b", "a: b", "it's", 'say "hi"', '"', "5\" wide", "{", "]", ",", ":",
    ", ", '": "', '{"a": 1}', '["x", "y"]', "[1]", "// no", "# 1", "/* x */", "a\nb", "tab\t",
    "C:\\dir", "\\", "naïve", "李雷", "🎉", "“smart”", "https://a.b/c?d=1", "a=b", "(c)", "...",
    "the rest", "no", "S", "M", "L", "2024-01-31", "a@b.io", "`x`", "```", "<b>", "&amp;",
]  # fmt: skip
SENTENCES = [
    'The customer said "never again", then left.', "It's 5:30; call back (maybe).", "Dear John,",
    "Rock 'n' roll, baby!", "SELECT * FROM t WHERE a = 'x' AND b > 3;", 'He said: "Yes."',
    "https://ex.org/p?q=1&r=[2]#top", "+49 (30) 1234-567", "$1,250.00", "2026-11-22T10:00:00Z",
    "12:30", "10%", "N/A", "--", "a/b", '<p class="x">Hi & bye</p>', "**bold**", "_it_", "- item",
    r"^\d+(\.\d+)?$", "C:\\Users\\me\\file.txt", 'print("x")', "if (a) { return b; }", "{name}",
    "let x = {a: 1};", "key: value", "a: 1, b: 2", "[draft]", "${var}", "%s items", "O'Brien",
    "東京", "yes", "off", "NaN", "undefined", "0", "007", "1e5", "0x1F", "v1.2.3", ".", ";",
    "Smith, John", "USD", "x == y", "a -> b", "(optional)", "50 // 7", "C# and F#", "#42", "½",
    "10²", "‘single’", "it’s", "5'11\"", '""', "''", "\\n", '\\"', "{}", "[]", "a,b,c", "}", "[",
    '"a", "b"', "end]", "[start", "{start", "stop:", "so,", "a\\", '"start', 'end"', "don't",
    "1,2", "true, false", "&quot;", "\u00a0", "\u200b", "—", "«x»", "„x“", ".5", "-1", "a|b",
    "~", "^", "*", "!", "=", "==", "->", "a,", "a;", "a:", "Hello, world!", "No, thanks.",
]  # fmt: skip
PLAIN = [
    "a", "x", "red", "Ann", "Rome", "New York", "5", "two words", "S", "M", "L", "pending",
    "USD", "x1", "OK", "first name", "one two three",
]  # fmt: skip
KEYS = [
    "a", "b", "id", "name", "age", "city", "tags", "two words", "x-y", "is_ok", "n.m", "größe",
    "1", "", "k:v", 'q"q', "true", "items", "note", "color", "@type", "a,b",
]  # fmt: skip
OTHER_KEYS = [
    "userId", "first_name", "last-name", "$ref", "item count", "price.usd", "名前", "isActive",
    "e1", "n", "t", "data", "0", "42", "null", "a:b", "c,d", "[k]", "{k}", "it's", "#tag", "//",
]  # fmt: skip
NUMBERS = [
    0, 1, -1, 5, 10, 42, 100, 1000, -273, 123456, 2026, 2**60, 0.5, 1.0, -2.25, 1e-7, 6.02e23,
]  # fmt: skip
COMMENTS = [
    "// note", "# it's the name", "/* value */", '// see "a"', "# 1, 2", "// a: 1", "# in EUR",
    '# yes, "quoted"', "/* a, b */", "// 1-based", '// it\'s 5" wide and 6" long', "// {a}",
]  # fmt: skip


@dataclass(frozen=True)
class Intact:
    """A document before the damage: its text stands between `before` and `after`."""

    shape: str
    text: str
    value: Any
    before: str = ""
    after: str = ""


def leaf(rng: random.Random, words: list[str]) -> Any:
    """Make one scalar."""
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(words)
    return rng.choice(NUMBERS) if kind < 0.8 else rng.choice([True, False, None])


def tree(rng: random.Random, depth: int, words: list[str], keys: list[str]) -> Any:
    """Make an object or a list; either may be empty."""
    size = rng.choice([0, 1, 1, 2, 2, 3, 3, 4])

    def child() -> Any:
        nested = depth and rng.random() < 0.35
        return tree(rng, depth - 1, words, keys) if nested else leaf(rng, words)

    if rng.random() < 0.6:
        return {key: child() for key in rng.sample(keys, size)}
    return [child() for _ in range(size)]


def commented(rng: random.Random, value: Any) -> str:
    """Write a document over several lines, with comments that only annotate."""
    lines = json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    for _ in range(rng.randint(1, 2)):
        lines[rng.randrange(len(lines))] += " " + rng.choice(COMMENTS)
    return "\n".join(lines)


def bare(key: str) -> str:
    """Write a key without quotes where it is a plain word."""
    return key if re.fullmatch(r"[A-Za-z]\w*", key) else json.dumps(key)


def in_single_quotes(value: Any) -> str:
    """Write a scalar as JavaScript often has it."""
    if not isinstance(value, str):
        return json.dumps(value)
    inside = json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "'" + inside.replace("'", "\\'") + "'"


def with_leading_commas(value: Any) -> str:
    """Write each member on a line of its own, behind a comma."""
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {json.dumps(child)}" for key, child in value.items()]
        return "{ " + "\n, ".join(parts) + "\n}"
    return "[ " + "\n, ".join(map(json.dumps, value)) + "\n]"


def intact(rng: random.Random) -> Intact:
    """Make one document in one of many shapes."""
    words, keys = rng.choice(
        [
            (WORDS, KEYS), (PLAIN, KEYS[:8]), (WORDS + PLAIN, KEYS[:10]),
            (SENTENCES, OTHER_KEYS), (SENTENCES + PLAIN, OTHER_KEYS[:9]), (PLAIN, OTHER_KEYS[:9]),
        ]
    )  # fmt: skip
    value = None
    while not value:
        value = tree(rng, rng.choice([0, 1, 1, 2, 3]), words, keys)
    names = rng.sample(keys[:8], rng.randint(1, 3))
    records = list[Any]()
    while len(records) < 3:
        record = {name: leaf(rng, words) for name in names}
        records += [record] if record not in records else []
    shapes = [*_plain(rng, value), *_lists(rng, records, words), *_wrapped(rng, value, words)]
    return rng.choice([*shapes, *_in_other_notations(rng, value)])


def _plain(rng: random.Random, value: Any) -> list[Intact]:
    """Write strict JSON in several layouts."""
    dump = json.dumps(value, ensure_ascii=rng.random() < 0.3)
    pretty = json.dumps(value, indent=rng.choice([1, 2, 4, "\t"]), ensure_ascii=False)
    spread = json.dumps(value, indent=0, ensure_ascii=False).replace("\n", " ")
    return [
        *[Intact("spaced", dump, value), Intact("pretty", pretty, value)] * 2,
        Intact("compact", json.dumps(value, separators=(",", ":")), value),
        Intact("wide", write(value, json.dumps, colon=" : ", comma=" ,"), value),
        Intact("spaces in brackets", spread, value),
        Intact("lines of Windows", pretty.replace("\n", "\r\n"), value),
        Intact("leading commas", with_leading_commas(value), value),
    ]


def _lists(rng: random.Random, records: list[Any], words: list[str]) -> list[Intact]:
    """Write records, JSON lines and a list of strings, whose brackets are not damaged."""
    flat = [rng.choice(words) for _ in range(rng.randint(2, 4))]
    return [
        Intact("records", json.dumps(records, indent=rng.choice([None, 2])), records),
        Intact("lines", "\n".join(map(json.dumps, records)), records),
        Intact("flat", rng.choice([", ", ","]).join(map(json.dumps, flat)), flat, "[", "]"),
    ]


def _wrapped(rng: random.Random, value: Any, words: list[str]) -> list[Intact]:
    """Write strict JSON inside of something else."""
    dump = json.dumps(value, ensure_ascii=rng.random() < 0.3)
    written = rng.choice([dump, json.dumps(value, indent=2, ensure_ascii=False)])
    inside = {"id": 1, "text": written, "end": rng.choice(words)}
    fence = rng.choice(["", "Here it is:\n\n", "It's done.\n"]) + "```json\n"
    after = rng.choice(["\n```", "\n```\nBye!", "\n```\n\nNote: I assumed UTC."])
    plain = Intact("", dump, value)
    return [
        Intact("fenced", written, value, fence, after),
        Intact("in prose", dump, value, "Here you go: ", rng.choice(["", "\n\nI hope it helps."])),
        Intact("in a string", json.dumps(inside), inside),
        Intact("escaped", json.dumps(dump)[1:-1], value),
        replace(plain, shape="in a tag", before="<answer>", after="</answer>"),
        replace(plain, shape="reasoned", before="<think>So {a: 1}? No.</think>\n"),
        replace(plain, shape="assigned", before=rng.choice(["result = ", "data: ", "Result: "])),
    ]


def _in_other_notations(rng: random.Random, value: Any) -> list[Intact]:
    """Write what is read as JSON but is not."""
    indented = json.dumps(value, indent=2, ensure_ascii=False)
    return [
        Intact("commented", commented(rng, value), value),
        Intact("bare keys", write(value, json.dumps, bare), value),
        Intact("javascript", write(value, in_single_quotes, bare), value),
        Intact("last commas", re.sub(r"(?<=[^\[{,\s])(\n\s*[\]}])", r",\1", indented), value),
        Intact("python", repr(value), value),
    ]
