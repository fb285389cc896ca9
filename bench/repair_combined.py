"""Ordinary deviations, several at once: what share of such documents is read exactly.

Run `python -m bench.repair_combined [--seed N] [--each N] [--show N]`. Each document is written by
a printer that has one to five habits of models or of other languages; its value is known.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.markdown import table
from bench.repair_score import percent, same
from graph_retry.output import parse_output

KEYS = [
    "id", "name", "title", "summary", "status", "tags", "items", "price", "total", "city", "email",
    "notes", "steps", "is_active", "score",
]  # fmt: skip
TEXTS = [
    "pending", "Berlin", "ana@example.org", "v1.2.3", "New York", "2024-05-01", "12:30", "EUR",
    "She said \"no\" twice, and left.", "It's fine, isn't it?", "Line one.\nLine two, {x}.",
    "See https://example.com/a?b=1#c for more.", "snake_case and * stars", "naïve café – 東京",
]  # fmt: skip
NOTES = ["in EUR", "the main one", "see page 2", "optional", "from the header", "user's choice"]
Habit = tuple[str, Callable[[random.Random, str], str]]
AROUND: dict[str, tuple[str, ...]] = {
    "fence": ("```json\n@\n```", "Here it is:\n\n```\n@\n```\n\nLet me know!"),
    "prose": ("Sure! Here you go:\n\n@", "@\n\nI hope this helps.", "The JSON:\n@\nAnything else?"),
    "tags": ("<answer>\n@\n</answer>", "<think>Is {x} set?</think>\n@", "<json>@</json>"),
}
WRITTEN = ["python", "smart", "bare_keys", "equals"]  # how strings, keys, literals are spelled
MARKS = ["slashes", "hashes", "blocks", "last_commas", "no_commas", "two_commas", "raw_lines",
         "inner_quotes", "plus", "odd_space", "escapes", "tuples"]  # fmt: skip
APART = [{"slashes", "hashes", "blocks"}, {"fence", "prose", "tags"}, set(WRITTEN),
         {"inner_quotes", "python", "smart"}, {"tuples", "smart"},
         {"escapes", "python"}]  # fmt: skip


def document(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """Make a value as models are asked for."""
    made: dict[str, Any] = {}
    for key in rng.sample(KEYS, rng.randint(3, 7)):
        kind = rng.random()
        if depth and kind < 0.15:
            made[key] = document(rng, depth - 1)
        elif kind < 0.3:
            made[key] = [rng.choice(TEXTS) for _ in range(rng.randint(2, 4))]
        elif depth and kind < 0.4:
            made[key] = [document(rng, 0) for _ in range(rng.randint(1, 3))]
        else:
            made[key] = rng.choice([*TEXTS, 0, 7, 42, -5, 0.5, 99.99, True, False, None])
    return made


class Printer:
    """Writes a value with some habits; `used` are those that it had an occasion for."""

    def __init__(self, rng: random.Random, habits: set[str]) -> None:
        self.rng, self.habits, self.used = rng, habits, set[str]()

    def may(self, habit: str, share: float = 1.0) -> bool:
        """Tell whether a habit shows here."""
        shows = habit in self.habits and self.rng.random() < share
        self.used |= {habit} if shows else set()
        return shows

    def string(self, text: str, *, is_key: bool = False) -> str:
        """Write a string."""
        body = json.dumps(text, ensure_ascii=False)[1:-1]
        if is_key and (self.may("bare_keys") or self.may("equals")):
            return text
        if self.may("python"):
            return repr(text)
        if '"' not in text and self.may("smart"):
            return f"“{body}”"
        if "\n" in text and self.may("raw_lines"):
            body = body.replace("\\n", "\n")
        if "_" in text and not is_key and self.may("escapes"):
            body = body.replace("_", "\\_")
        if '"' in text and self.may("inner_quotes"):
            body = body.replace('\\"', '"')
        return f'"{body}"'

    def scalar(self, value: Any) -> str:
        """Write what is no container."""
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, bool) or value is None:
            return repr(value) if self.may("python") else json.dumps(value)
        return f"+{value}" if value > 0 and self.may("plus", 0.5) else json.dumps(value)

    def write(self, value: Any, indent: str = "\n") -> str:
        """Write a value over lines."""
        if not isinstance(value, dict | list):
            return self.scalar(value)
        colon = " = " if self.may("equals") else ": "
        if isinstance(value, dict):
            opens, closes = "{}"
            parts = [
                self.string(key, is_key=True) + colon + self.write(each, indent + "  ")
                for key, each in value.items()
            ]
        else:
            opens, closes = "()" if self.may("tuples", 0.6) and len(value) > 1 else "[]"
            parts = [self.write(each, indent + "  ") for each in value]
        inner = indent + "  "
        if self.may("odd_space"):
            inner = inner.replace(" ", "\u00a0")
        return (
            opens + "".join(self._members(parts, inner, is_object=opens == "{")) + indent + closes
        )

    def _members(self, parts: list[str], inner: str, *, is_object: bool) -> list[str]:
        written = []
        for number, part in enumerate(parts, 1):
            comma = ","
            if number == len(parts):
                comma = "," if self.may("last_commas", 0.6) else ""
            elif is_object and self.may("no_commas", 0.15):
                comma = ""
            elif is_object and "two_commas" not in self.used and self.may("two_commas", 0.2):
                comma = ",,"
            written.append(inner + part + comma + self._note())
        return written

    def _note(self) -> str:
        note = self.rng.choice(NOTES)
        for habit, form in (("slashes", " // @"), ("hashes", "  # @"), ("blocks", " /* @ */")):
            if self.may(habit, 0.15):
                return form.replace("@", note)
        return ""


def case(rng: random.Random, kinds: int) -> tuple[str, Any, set[str]]:
    """Make a text with exactly so many kinds of deviations, its value, and their names."""
    while True:
        habits = set(rng.sample([*AROUND, *WRITTEN, *MARKS], kinds))
        if any(len(habits & group) > 1 for group in APART):
            continue
        value = document(rng)
        printer = Printer(rng, habits)
        text = printer.write(value)
        for habit in habits & AROUND.keys():
            text = rng.choice(AROUND[habit]).replace("@", text)
        if printer.used | (habits & AROUND.keys()) == habits and not re.search(r",,\s*[}\]]", text):
            return text, value, habits


def outcome(rng: random.Random, kinds: int) -> str:
    """Read one document: `exact`, `wrong` or `refused`."""
    text, value, _ = case(rng, kinds)
    read = parse_output(text)
    return "refused" if not read.ok else "exact" if same(read.value, value) else "wrong"


def main() -> None:
    """Print a row for each number of kinds."""
    arguments = argparse.ArgumentParser(description="Read documents with several deviations.")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--each", type=int, default=300, help="documents a row")
    arguments.add_argument("--show", type=int, default=0, help="unread documents printed a row")
    options = arguments.parse_args()
    rng, rows = random.Random(options.seed), []
    for kinds in range(1, 6):
        count: Counter[str] = Counter()
        for _ in range(options.each):
            state = rng.getstate()
            result = outcome(rng, kinds)
            count[result] += 1
            if result != "exact" and count[result] <= options.show:
                again = random.Random()
                again.setstate(state)
                text, _, habits = case(again, kinds)
                print(result, sorted(habits), text, parse_output(text).failure, "\n")
        shares = (percent(count[each], options.each) for each in ("exact", "wrong", "refused"))
        rows.append([str(kinds), *shares])
    print(table(["kinds at once", "exact %", "wrong %", "refused %"], rows))


if __name__ == "__main__":
    main()
