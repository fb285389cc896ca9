"""Documents to damage in layouts and notations that are mixed at random.

Each document has its own quotes, colons, commas, indentation, comments and wrapping, as the hand or
the model has that wrote it; other generators write whole documents in one known notation.
"""

import json
import random
import re
from dataclasses import dataclass
from typing import Any

from bench.damage_documents import KEYS, OTHER_KEYS, PLAIN, SENTENCES, WORDS, Intact, tree

COMMENTS = [
    " note", " in EUR", " required", " see docs, p. 3", " default: 1", "don't change",
    ' the "name"', " x", " TODO",
]  # fmt: skip
AROUND = [
    *[("", "")] * 7, ("```json\n", "\n```"), ("```\n", "\n```"), ("~~~\n", "\n```"),
    ("Here you go: ", " Done."), ("Sure!\n\n", "\n\nHope it helps."), ("The data:\n", ""),
    ("Result below.\n\n```json\n", "\n```\nAnything else?"), ("<answer>", "</answer>"),
    ("const x = ", ";"), ("data = ", ""), ("print(", ")"), ("\ufeff", ""),
    ("<think>\nThe user wants data.\n</think>\n", ""),
]  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """How one document is written. An `indent` of `None` keeps it on one line."""

    quotes: str
    bare: bool
    colon: str
    comma: str
    indent: str | None
    inner_on_line: bool
    leading_commas: bool
    last: str
    comment: str
    tuples: bool
    python: bool
    line_end: str
    padding: str
    other_numbers: bool


def layout(rng: random.Random) -> Layout:
    """Draw a layout; what is rare among writers is rare here, too."""

    def seldom(share: float) -> bool:
        return rng.random() < share

    quotes = rng.choices(['"', "'", "mixed", "python", "“"], [6, 2.5, 0.7, 1.2, 0.4])[0]
    return Layout(
        quotes=quotes,
        bare=seldom(0.18),
        colon=rng.choices([": ", ":", " : ", " = ", " => ", ":\t"], [8, 3, 0.4, 0.6, 0.5, 0.2])[0],
        comma=rng.choices([", ", ",", " , ", ",  "], [5, 4, 0.5, 0.3])[0],
        indent=rng.choices([None, "  ", "    ", "\t", ""], [5, 3, 2, 1, 0.5])[0],
        inner_on_line=seldom(0.3),
        leading_commas=seldom(0.05),
        last="," if seldom(0.2) else "",
        comment=rng.choices(["", "//", "#", "/*"], [8, 1, 0.8, 1])[0],
        tuples=seldom(0.1),
        python=quotes == "python" or seldom(0.08),
        line_end="\r\n" if seldom(0.08) else "\n",
        padding=" " if seldom(0.2) else "",
        other_numbers=seldom(0.08),
    )


def mixed(rng: random.Random) -> Intact:
    """Make one document in a layout of its own."""
    words, keys = rng.choice([(PLAIN, KEYS[:8]), (WORDS + PLAIN, KEYS), (SENTENCES, OTHER_KEYS)])
    value = None
    while not value:
        value = tree(rng, rng.choice([0, 1, 2, 3]), words, keys)
    before, after = rng.choice(AROUND)
    return Intact("mixed", _Writer(rng, layout(rng)).written(value, 0), value, before, after)


class _Writer:
    def __init__(self, rng: random.Random, how: Layout) -> None:
        self.rng, self.how = rng, how

    def written(self, value: Any, depth: int) -> str:
        """Write a value that stands `depth` containers deep."""
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, (dict, list)):
            return self._container(value, depth)
        if value is None or isinstance(value, bool):
            return repr(value) if self.how.python else json.dumps(value)
        return self._number(value)

    def _string(self, value: str) -> str:
        quotes = self.how.quotes
        quotes = self.rng.choice(['"', "'"]) if quotes == "mixed" else quotes
        if quotes == "python":
            return repr(value)
        inside = json.dumps(value, ensure_ascii=False)[1:-1]
        if quotes == "'":
            return "'" + inside.replace('\\"', '"').replace("'", "\\'") + "'"
        return f"“{inside}”" if quotes == "“" else f'"{inside}"'

    def _number(self, value: float) -> str:
        text = json.dumps(value)
        if not self.how.other_numbers or self.rng.random() < 0.5:
            return text
        others = [f"+{text}" if value > 0 else text, text.removeprefix("0")]
        return self.rng.choice([*others, hex(value)] if type(value) is int else others) or text

    def _key(self, name: str) -> str:
        is_name = re.fullmatch(r"[A-Za-z_$][\w$]*", name)
        return name if self.how.bare and is_name else self._string(name)

    def _container(self, value: Any, depth: int) -> str:
        how, is_object = self.how, isinstance(value, dict)
        is_tuple = how.tuples and not is_object and depth and len(value) > 1
        opening, closing = "{}" if is_object else "()" if is_tuple else "[]"
        if not value:
            return opening + closing
        children = list(value.values()) if is_object else value
        is_flat = not any(isinstance(child, (dict, list)) for child in children)
        indent = None if how.inner_on_line and is_flat and depth else how.indent
        labels = [self._key(name) + how.colon for name in value] if is_object else [""] * len(value)
        parts = [
            label + self.written(child, depth + 1)
            for label, child in zip(labels, children, strict=True)
        ]
        if indent is None:
            inside = how.comma.join(part + self._remark(on_line=True) for part in parts)
            return opening + how.padding + inside + how.last + how.padding + closing
        line = how.line_end + indent * (depth + 1)
        if how.leading_commas:
            inside = line + f"{line}, ".join(parts)
        else:
            ends = [","] * (len(parts) - 1) + [how.last]
            lines = [part + end + self._remark() for part, end in zip(parts, ends, strict=True)]
            inside = line + line.join(lines)
        return opening + inside + how.line_end + indent * depth + closing

    def _remark(self, *, on_line: bool = False) -> str:
        """Write a comment behind a member, or none."""
        mark = self.how.comment
        if not mark or self.rng.random() > 0.25 or (on_line and mark != "/*"):
            return ""
        text = self.rng.choice(COMMENTS)
        return f" /*{text} */" if mark == "/*" else f" {mark}{text}"
