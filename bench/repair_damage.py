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

from bench.damage_documents import Intact, intact
from bench.damage_layouts import mixed
from bench.damage_notations import as_json, noted
from bench.markdown import table
from bench.notation_grammar import NotThisNotation, plain_value
from graph_retry.output import parse_output

ALPHABET = '，、"""\'\'{}[]()::,,,\\\\/#`.-+*=<>&$@ \n\tab1Z09eé“”'
MARKS = '{}[],:"'
TOKEN = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|“[^”]*”|`[^`]*`|=>|=|//[^\n]*|#[^\n]*|/\*.*?\*/|[{}\[\],:()]"
    r"|[^\s{}\[\],:()\"'#/=“`]+|.",
    re.DOTALL,
)
NUMBER = re.compile(r"(?ai)[+-]?(?:0x[\da-f]+|0[ob]\d+|(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)\Z")
BARE_KEY = re.compile(r"([{,]\s*)([\w$][\w$.-]*)(?=\s*:)")
COMMENT = re.compile(r"//|/\*|#")
_POINT_AT_END = re.compile(r"\d\.(?!\d)")
STRING = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')\Z", re.DOTALL)


@dataclass(frozen=True)
class Damaged:
    """One damaged document: what was done to it, its text, and the value it had before."""

    kind: str
    shape: str
    text: str
    value: Any
    complete: bool | None


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
    for text, reason in ((new, "strict JSON"), (_in_double_quotes(new), "JSON in single quotes")):
        parts = [" " if COMMENT.match(part) else _blanked(part) for part in TOKEN.findall(text)]
        strict = BARE_KEY.sub(r'\1"\2"', "".join(parts))
        for reading, addition in ((text, ""), (strict, " and comments")):
            with contextlib.suppress(ValueError):
                json.loads(reading)
                return reason + addition
            with contextlib.suppress(ValueError):
                json.loads(re.sub(r",(\s*[}\]])", r"\1", reading))
                return f"{reason} but for a last comma"
    if "'" in new or any(word in new for word in ("True", "False", "None")):
        with contextlib.suppress(ValueError, TypeError, SyntaxError):
            ast.literal_eval(new.strip())
            return "a Python literal"
    return _other_token(old, new) or _unmarked(old, new)


def _blanked(part: str) -> str:
    """Write an empty string for one that JSON has, so that nothing in it looks like a key."""
    with contextlib.suppress(ValueError):
        return '""' if part[0] == '"' and json.loads(part) else part
    return part


def _unescaped(text: str) -> str:
    """Undo one level of escapes, as far as it goes."""
    return re.sub(r'\\([\\"])', r"\1", text)


def _in_double_quotes(text: str) -> str:
    """Write strings in single quotes as JSON has them."""
    parts = TOKEN.findall(text)
    for index, part in enumerate(parts):
        if part[0] == "'" and len(part) > 1:
            with contextlib.suppress(ValueError, SyntaxError):
                parts[index] = json.dumps(ast.literal_eval(part))
    return "".join(parts)


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
    swapped_out = pair in {'}"', "}'"} and old[at + 2 :].lstrip()[:1] == "}"
    if swapped_out and new[at : at + 2] == pair[::-1]:
        return "a brace swapped out of a string"
    if _POINT_AT_END.search(new) and not _POINT_AT_END.search(old):
        return "a point at the end of a number"
    if len(old) != len(new) or pair[:1] not in {*"\"',:{}[]#/\\"} | {*string.whitespace}:
        return ""
    if new[at : at + 2] == pair[::-1] and pair[:1].isspace() != pair[1:].isspace():
        return "white space swapped into a string"
    overwritten = old[at + 1 :] == new[at + 1 :] and not pair[:1].isspace()
    is_letter = new[at : at + 1].isalnum() or new[at : at + 1] == "_"
    return "a mark overwritten by a letter" if overwritten and is_letter else ""


def _compared(shape: str, old: str, new: str) -> tuple[str, str]:
    """Return what of a document, and of the damaged one, tells whether it is broken."""
    if shape == "flat":  # the brackets around it are not damaged
        return f"[{old}]", f"[{new}]"
    if shape == "escaped" and '\\"' in new:
        return _unescaped(old), _unescaped(new)
    if shape == "lines" and old.count("\n") == new.count("\n"):
        lines = zip(old.split("\n"), new.split("\n"), strict=True)
        different = [pair for pair in lines if pair[0] != pair[1]]
        return different[0] if len(different) == 1 else (old, new)
    return old, new


def left_out_because(document: Intact, text: str) -> str:
    """Tell why `text` is no broken form of the document; empty if it is one."""
    if document.shape == "mixed":
        with contextlib.suppress(NotThisNotation):
            plain_value(text)
            return "a document in its notation"
        return "nothing changed" if text == document.text else _unmarked(document.text, text)
    old, new = _compared(document.shape, document.text, text)
    plain = [as_json(document.shape, each) for each in (document.text, text)]
    pairs = [(document.text, text), (old, new), (plain[0], plain[1])]
    reasons = (plain_reading(*pair) for pair in dict.fromkeys(pairs))
    return next(filter(None, reasons), "")


def cases(rng: random.Random, left_out: Counter[str]) -> Iterator[Damaged]:
    """Make damaged documents without end; count in `left_out` what is no damage."""
    while True:
        document = rng.choice([intact, intact, noted, mixed])(rng)
        kind, text = rng.choice([characters, characters, tokens])(rng, document.text)
        if reason := left_out_because(document, text):
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


def report(
    options: argparse.Namespace,
    counted: Counter[tuple[str, str]],
    wrong: list[Damaged],
    left_out: Counter[str],
) -> None:
    """Print the counter-examples, smallest first, and the tables."""
    for case in wrong[: options.show]:
        read = parse_output(case.text, complete=case.complete)
        print(f"{case.kind}, {case.shape}: {case.text!r}")
        print(f"    read {read.value!r}, was {case.value!r}, {[r['kind'] for r in read.repairs]}")
    seed = f"(seed {options.seed})"
    print(f"{counted.total() // 2:,} damaged documents {seed}: {len(wrong)} read wrong.\n")
    results = ["exact", "refused", "WRONG"]
    kinds = [
        kind
        for kind in dict.fromkeys(kind for kind, _ in counted)
        if kind.endswith(("character", "token"))
    ]
    rows = [[kind, *(counted[kind, result] for result in results)] for kind in kinds]
    print(table(["damage", *results], rows))
    reasons = ", ".join(f"{reason} {n}" for reason, n in left_out.most_common(5))
    print(f"\nLeft out: {left_out.total()}, most of them: {reasons}.")


def main() -> None:
    """Print the counter-examples, smallest first, and the tables."""
    arguments = argparse.ArgumentParser(description="Damage documents and read them.")
    arguments.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    arguments.add_argument("--cases", type=int, default=100_000)
    arguments.add_argument("--show", type=int, default=40, help="counter-examples printed")
    options = arguments.parse_args()
    report(options, *run(options.seed, options.cases))


if __name__ == "__main__":
    main()
