"""Make every edit of one character or token of short documents, and count what is read wrong.

Run `python -m bench.repair_edits [--seed N] [--cases N] [--length N]`. A random draw, as of
`bench.repair_damage`, meets a rare tie once in a million cases; around a document that has it, this
meets it at once. What is left out is left out by the same rules.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator

from bench.damage_documents import Intact, intact
from bench.damage_layouts import mixed
from bench.damage_notations import noted
from bench.repair_damage import MARKS, TOKEN, Damaged, left_out_because, outcome, report

CHARACTERS = "\"'{}[]():,\\/#`.-+*=<>&$@ \n\ta1Z0é“;|!?%_~"


def every_edit(text: str) -> Iterator[tuple[str, str]]:
    """Make every edit of one character or one token; tell its kind."""
    for at, char in enumerate(text):
        yield "drop character", text[:at] + text[at + 1 :]
        yield "double character", text[:at] + char + text[at:]
        yield "swap character", text[:at] + text[at : at + 2][::-1] + text[at + 2 :]
        for other in CHARACTERS:
            yield "replace character", text[:at] + other + text[at + 1 :]
            yield "insert character", text[:at] + other + text[at:]
    spans = [match.span() for match in TOKEN.finditer(text) if not match[0].isspace()]
    for index, (low, high) in enumerate(spans):
        token = text[low:high]
        yield "drop token", text[:low] + text[high:]
        yield "double token", text[:high] + token + text[high:]
        yield "double token", text[:high] + " " + token + text[high:]
        for mark in MARKS:
            yield "replace token", text[:low] + mark + text[high:]
        if index + 1 < len(spans):
            start, end = spans[index + 1]
            swapped = text[start:end] + text[high:start] + token
            yield "swap token", text[:low] + swapped + text[end:]
        if token in MARKS:
            rest = text[:low] + text[high:]
            for place, _ in spans:
                shift = place - len(token) * (place > low)
                yield "move token", rest[:shift] + token + rest[shift:]


def _read(document: Intact, text: str, kind: str) -> tuple[str, Damaged]:
    whole = document.before + text + document.after
    case = Damaged(kind, document.shape, whole, document.value, None)
    return outcome(case), case


def run(
    seed: int, count: int, length: int
) -> tuple[Counter[tuple[str, str]], list[Damaged], Counter[str]]:
    """Read at least `count` texts; return the outcomes, the wrong ones, and what was left out."""
    rng, seen = random.Random(seed), set[str]()
    table: Counter[tuple[str, str]] = Counter()
    left_out: Counter[str] = Counter()
    wrong: list[Damaged] = []
    while table.total() < 2 * count:
        document = rng.choice([intact, noted, mixed])(rng)
        if len(document.text) > length or document.text in seen:
            continue
        seen.add(document.text)
        result, case = _read(document, document.text, "none")
        if result != "exact":
            wrong += [case] if result == "WRONG" else []
            continue
        texts = {text: kind for kind, text in every_edit(document.text)}
        for text, kind in texts.items():
            result, case = _read(document, text, kind)
            if result != "refused" and (reason := left_out_because(document, text)):
                left_out[reason] += 1
                continue
            table[kind, result] += 1
            table[document.shape, result] += 1
            if result == "WRONG":
                wrong.append(case)
    return table, sorted(wrong, key=lambda case: len(case.text)), left_out


def main() -> None:
    """Print the counter-examples, smallest first, and the tables."""
    arguments = argparse.ArgumentParser(description="Make every edit of documents and read them.")
    arguments.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    arguments.add_argument("--cases", type=int, default=500_000)
    arguments.add_argument("--length", type=int, default=70, help="characters of a document")
    arguments.add_argument("--show", type=int, default=40, help="counter-examples printed")
    options = arguments.parse_args()
    report(options, *run(options.seed, options.cases, options.length))


if __name__ == "__main__":
    main()
