"""The corpus: seeded malformed outputs with ground truth, in three classes.

`exact` gives the value back from syntax alone; in `lossy` something is missing; in `none` there
was no JSON. Run as a program it prints how many cases each mode has.
"""

import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

from bench.repair_documents import document, dump, spans
from bench.repair_exact import EXACT
from bench.repair_exact_marked import EXACT as _WITH_MARKED
from bench.repair_exact_more import EXACT as _WITH_MORE
from bench.repair_lost import LOSSY, NONE

assert EXACT is _WITH_MORE is _WITH_MARKED
COMBINED = [
    "fence_json", "fence_in_prose", "prose_both", "prose_after", "think", "bom", "label",
    "xml_wrapper", "assignment", "special_tokens", "prose_before",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One output: its text, what it holds, and what the finish reason said."""

    mode: str
    group: str
    text: str
    value: Any
    complete: bool | None = None


def build(seed: int = 1, each: int = 40) -> list[Case]:
    """Make the corpus: `each` cases a mode, and as many of every mode inside a wrapping."""
    rng = random.Random(seed)
    cases: list[Case] = []
    for group, modes in (("exact", EXACT), ("lossy", LOSSY), ("none", NONE)):
        for name, mode in modes.items():
            for number in range(each):
                made = None
                while made is None:
                    made = mode(rng, document(rng, plain=number % 3 == 0))
                complete = made[2] if len(made) > 2 else None
                cases.append(Case(name, group, made[0], made[1], complete))
    return cases + combined(rng, cases, each)


def combined(rng: random.Random, cases: list[Case], each: int) -> list[Case]:
    """Put inner modes into wrappings: two modes in one output."""
    result = []
    inner = [c for c in cases if c.group == "exact" and c.text.lstrip()[:1] in {"{", "["}]
    alone = {"json_lines", "concatenated", "prose_after", "missing_closer_complete"}
    inner = [c for c in inner if c.mode not in alone]
    for wrapping in COMBINED:
        for case in rng.sample(inner, each):
            text = EXACT[wrapping](rng, "MARK")[0].replace('"MARK"', case.text)
            name = f"combined_{wrapping}"
            result.append(Case(name, "exact", text, case.value, case.complete))
    return result


def damaged(seed: int = 2, count: int = 3000) -> list[Case]:
    """Damage valid documents by one token: left out, doubled, swapped, or another in its place.

    A value that replaces a value, or a list that loses its last element and keeps the comma, is
    a different document rather than a damaged one: such texts carry no trace and are left out.
    """
    rng = random.Random(seed)
    cases: list[Case] = []
    while len(cases) < count:
        value = document(rng)
        text = dump(rng, value)
        places = spans(text)
        index = rng.randrange(len(places))
        low, high = places[index]
        token = text[low:high]
        kind = rng.choice(["delete", "double", "swap", "replace", "insert", "quote"])
        if kind == "swap" and index + 1 < len(places):
            start, end = places[index + 1]
            broken = text[:low] + text[start:end] + text[high:start] + token + text[end:]
        elif kind == "quote" and token[0] == '"':
            broken = text[:low] + rng.choice([token[1:], token[:-1]]) + text[high:]
        else:
            structure = rng.choice("{}[],:")
            new = {"delete": "", "double": token + token, "insert": structure + token}
            broken = text[:low] + new.get(kind, structure) + text[high:]
        if not _is_other_document(broken):
            complete = rng.choice([None, None, True])
            cases.append(Case(f"damage_{kind}", "damage", broken, value, complete))
    return cases


def _is_other_document(text: str) -> bool:
    import re  # noqa: PLC0415

    try:
        json.loads(re.sub(r",(\s*[}\]])", r"\1", text))
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    for (group, mode), number in Counter((c.group, c.mode) for c in build()).items():
        print(f"{group:6} {mode:28} {number}")
