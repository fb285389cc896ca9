"""Damage documents by one character or one token, and count what is read wrong.

Run `python -m bench.repair_damage [--seed N] [--cases N] [--show N]`. No value may differ from the
true one and be called lossless. Damage that leaves another document rather than a broken one is
left out, by the rules of `plain_reading`, and counted.
"""

import argparse
import ast
import contextlib
import json
import random
import re
import string
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.markdown import table
from bench.repair_documents import write
from graph_retry.output import parse_output

WORDS = [
    "a", "x", "red", "Ann", "Rome", "New York", "true", "null", "None", "5", "3.5", "", " ",
    "two words", "end.", "a, b", "a: b", "it's", 'say "hi"', '"', "5\" wide", "{", "]", ",", ":",
    ", ", '": "', '{"a": 1}', '["x", "y"]', "[1]", "// no", "# 1", "/* x */", "a\nb", "tab\t",
    "C:\\dir", "\\", "naïve", "李雷", "🎉", "“smart”", "https://a.b/c?d=1", "a=b", "(c)", "...",
    "the rest", "no", "S", "M", "L", "2024-01-31", "a@b.io", "`x`", "```", "<b>", "&amp;",
]  # fmt: skip
PLAIN = ["a", "x", "red", "Ann", "Rome", "New York", "5", "two words", "S", "M", "L", "pending"]
KEYS = [
    "a", "b", "id", "name", "age", "city", "tags", "two words", "x-y", "is_ok", "n.m", "größe",
    "1", "", "k:v", 'q"q', "true", "items", "note", "color", "@type", "a,b",
]  # fmt: skip
NUMBERS = [0, 1, -1, 5, 10, 42, 100, 1000, -273, 123456, 2**60, 0.5, 1.0, -2.25, 1e-7, 6.02e23]
COMMENTS = ["// note", "# it's the name", "/* value */", '// see "a"', "# 1, 2", "// a: 1"]
ALPHABET = '"""\'\'{}[]()::,,,\\\\/#`.-+*=<>&$@ \n\tab1Z09eé“”'
MARKS = '{}[],:"'
TOKEN = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|//[^\n]*|#[^\n]*|/\*.*?\*/|[{}\[\],:()]"
    r"|[^\s{}\[\],:()\"'#/]+|.",
    re.DOTALL,
)
NUMBER = re.compile(r"(?ai)[+-]?(?:0x[\da-f]+|0[ob]\d+|(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)\Z")
BARE_KEY = re.compile(r"([{,]\s*)([\w$][\w$.-]*)(?=\s*:)")
COMMENT = re.compile(r"//|/\*|#")
STRING = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')\Z", re.DOTALL)


@dataclass(frozen=True)
class Damaged:
    """One damaged document: what was done to it, its text, and the value it had before."""

    kind: str
    shape: str
    text: str
    value: Any
    complete: bool | None


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


def intact(rng: random.Random) -> Intact:
    """Make one document in one of many shapes."""
    words, keys = rng.choice([(WORDS, KEYS), (PLAIN, KEYS[:8]), (WORDS + PLAIN, KEYS[:10])])
    value = None
    while not value:
        value = tree(rng, rng.choice([0, 1, 1, 2, 3]), words, keys)
    dump = json.dumps(value, ensure_ascii=rng.random() < 0.3)
    pretty = json.dumps(value, indent=rng.choice([1, 2, 4, "\t"]), ensure_ascii=False)
    names = rng.sample(keys[:8], rng.randint(1, 3))
    records = [{name: leaf(rng, words) for name in names} for _ in range(rng.randint(2, 3))]
    flat = [rng.choice(words) for _ in range(rng.randint(2, 4))]
    inside = {"id": 1, "text": rng.choice([dump, pretty]), "end": rng.choice(words)}
    fence = rng.choice(["", "Here it is:\n\n", "It's done.\n"]) + "```json\n"
    shapes = [
        Intact("spaced", dump, value),
        Intact("compact", json.dumps(value, separators=(",", ":")), value),
        Intact("pretty", pretty, value),
        Intact("wide", write(value, json.dumps, colon=" : ", comma=" ,"), value),
        Intact("records", json.dumps(records, indent=rng.choice([None, 2])), records),
        Intact("flat", rng.choice([", ", ","]).join(map(json.dumps, flat)), flat, "[", "]"),
        Intact(
            "fenced", rng.choice([dump, pretty]), value, fence, rng.choice(["\n```", "\n```\nBye!"])
        ),
        Intact("in prose", dump, value, "Here you go: ", rng.choice(["", "\n\nI hope it helps."])),
        Intact("commented", commented(rng, value), value),
        Intact("bare keys", write(value, json.dumps, bare), value),
        Intact("python", repr(value), value),
        Intact("in a string", json.dumps(inside), inside),
    ]
    return rng.choices(shapes, [2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1])[0]


def bare(key: str) -> str:
    """Write a key without quotes where it is a plain word."""
    return key if re.fullmatch(r"[A-Za-z]\w*", key) else json.dumps(key)


def characters(rng: random.Random, text: str) -> tuple[str, str]:
    """Damage one character of `text`; marks of structure are hit more often than their share."""
    marks = [i for i, char in enumerate(text) if char in "\"'{}[],:\\/#"]
    at = rng.choice(marks) if marks and rng.random() < 0.7 else rng.randrange(len(text))
    at = min(at + rng.choice([0, 0, 0, 1]), len(text) - 1)
    kind, char = rng.choice(["insert", "drop", "double", "swap", "replace"]), text[at]
    new = {
        "insert": rng.choice(ALPHABET) + char, "drop": "", "double": char * 2,
        "replace": rng.choice(ALPHABET), "swap": text[at : at + 2][::-1],
    }[kind]  # fmt: skip
    return f"{kind} character", text[:at] + new + text[at + (2 if kind == "swap" else 1) :]


def tokens(rng: random.Random, text: str) -> tuple[str, str]:
    """Damage one token of `text`; what is inserted is structure: a value would be more data."""
    spans = [match.span() for match in TOKEN.finditer(text) if not match[0].isspace()]
    index = rng.randrange(len(spans))
    low, high = spans[index]
    token = text[low:high]
    kind = rng.choice(["insert", "drop", "double", "swap", "replace", "move"])
    mark, gap = rng.choice(MARKS), rng.choice(["", " "])
    if kind == "swap" and index + 1 < len(spans):
        start, end = spans[index + 1]
        return "swap token", text[:low] + text[start:end] + text[high:start] + token + text[end:]
    if kind == "move" and token in MARKS:
        place = rng.choice([low for low, _ in spans])
        shift = len(token) if place > low else 0
        rest = text[:low] + text[high:]
        return "move token", rest[: place - shift] + token + rest[place - shift :]
    new = {"drop": "", "double": token + gap + token, "insert": mark + gap + token}
    return f"{kind} token", text[:low] + new.get(kind, mark) + text[high:]


def plain_reading(old: str, new: str) -> str:
    """Tell why `new` is another document rather than a broken one; empty if it is broken."""
    if new == old:
        return "nothing changed"
    parts = [" " if COMMENT.match(part) else part for part in TOKEN.findall(new)]
    bare = BARE_KEY.sub(r'\1"\2"', "".join(parts))
    for text, reason in (
        (new, "strict JSON"),
        (bare, "strict JSON and comments"),
        (re.sub(r",(\s*[}\]])", r"\1", bare), "strict JSON but for a last comma"),
    ):
        with contextlib.suppress(ValueError):
            json.loads(text)
            return reason
    if "'" in new or any(word in new for word in ("True", "False", "None")):
        with contextlib.suppress(ValueError, TypeError, SyntaxError):
            ast.literal_eval(new.strip())
            return "a Python literal"
    return _other_token(old, new) or _unmarked(old, new)


def _other_token(old: str, new: str) -> str:
    """Tell whether only the inside of one string, number or bare key differs."""
    before, after = ([t for t in TOKEN.findall(text) if not t.isspace()] for text in (old, new))
    pairs = enumerate(zip(before, after, strict=False))
    different = [(at, left, right) for at, (left, right) in pairs if left != right]
    if len(before) != len(after) or len(different) != 1:
        return ""
    at, left, right = different[0]
    if STRING.match(left) and STRING.match(right) and left[0] == right[0]:
        return "another string"
    if left.isidentifier() and BARE_KEY.match(f"{{{right}{after[at + 1]}"):
        return "another bare key"
    return "another number" if NUMBER.match(left) and NUMBER.match(right) else ""


def _unmarked(old: str, new: str) -> str:
    """Tell whether a quote changed in a way that a string around other characters shows, too."""
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    pair, word = old[at : at + 2], re.compile(r"\w'\w")
    if word.match(new, at - 1) and new[at + 1 :] in {old[at:], old[at + 1 :]}:
        return "an apostrophe in a word"
    is_repeated = pair[:1].isdigit() and new[at : at + 1] == pair[1:] and pair[1:] in {",", "}"}
    if is_repeated and old[at + 1 :] == new[at + 1 :]:
        return "a digit overwritten by a second comma or brace"
    if len(old) != len(new) or pair[:1] not in {*"\"',:{}[]#/"} | {*string.whitespace}:
        return ""
    if new[at : at + 2] == pair[::-1] and pair[:1].isspace() != pair[1:].isspace():
        return "white space swapped into a string"
    overwritten = old[at + 1 :] == new[at + 1 :] and not pair[:1].isspace()
    return "a mark overwritten by a letter" if overwritten and new[at].isalnum() else ""


def cases(rng: random.Random, left_out: Counter[str]) -> Iterator[Damaged]:
    """Make damaged documents without end; count in `left_out` what is no damage."""
    while True:
        document = intact(rng)
        kind, text = rng.choice([characters, characters, tokens])(rng, document.text)
        whole = document.shape == "flat"
        old, new = ((f"[{t}]" if whole else t) for t in (document.text, text))
        if reason := plain_reading(old, new):
            left_out[reason] += 1
            continue
        text = document.before + text + document.after
        yield Damaged(kind, document.shape, text, document.value, rng.choice([None, None, True]))


def same(left: Any, right: Any) -> bool:
    """Compare with types: `True`, `1` and `1.0` differ."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def outcome(case: Damaged) -> str:
    """Read one case: `exact`, `refused`, or `WRONG` where another value is called lossless."""
    parsed = parse_output(case.text, complete=case.complete)
    if not parsed.ok or not parsed.lossless:
        return "refused"
    return "exact" if same(parsed.value, case.value) else "WRONG"


def run(seed: int, count: int) -> tuple[Counter[tuple[str, str]], list[Damaged], Counter[str]]:
    """Read `count` cases; return the outcomes by kind, the wrong ones, and what was left out."""
    table: Counter[tuple[str, str]] = Counter()
    wrong: list[Damaged] = []
    left_out: Counter[str] = Counter()
    source = cases(random.Random(seed), left_out)
    for _ in range(count):
        case = next(source)
        result = outcome(case)
        table[case.kind, result] += 1
        table[case.shape, result] += 1
        if result == "WRONG":
            wrong.append(case)
    return table, sorted(wrong, key=lambda case: len(case.text)), left_out


def main() -> None:
    """Print the counter-examples, smallest first, and the tables."""
    arguments = argparse.ArgumentParser(description="Damage documents and read them.")
    arguments.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    arguments.add_argument("--cases", type=int, default=100_000)
    arguments.add_argument("--show", type=int, default=40, help="counter-examples printed")
    options = arguments.parse_args()
    counted, wrong, left_out = run(options.seed, options.cases)
    for case in wrong[: options.show]:
        read = parse_output(case.text, complete=case.complete)
        print(f"{case.kind}, {case.shape}: {case.text!r}")
        print(f"    read {read.value!r}, was {case.value!r}, {[r['kind'] for r in read.repairs]}")
    print(f"{options.cases:,} damaged documents (seed {options.seed}): {len(wrong)} read wrong.\n")
    results = ["exact", "refused", "WRONG"]
    kinds = dict.fromkeys(kind for kind, _ in counted)
    rows = [[kind, *(counted[kind, result] for result in results)] for kind in kinds]
    print(table(["damage", *results], rows))
    reasons = ", ".join(f"{reason} {n}" for reason, n in left_out.most_common())
    print(f"\nLeft out: {reasons}.")


if __name__ == "__main__":
    main()
