"""Score readers on the corpus, on damaged documents, on speed and on pathological texts.

Run `python -m bench.repair_score [--seed N] [--each N] [--speed] [--jsonrepair INDEX_JS]`.
A reader that is not installed is reported as absent.
"""

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.markdown import table
from bench.repair_corpus import Case, build, damaged
from bench.repair_documents import document
from bench.repair_readers import Outcome, jsonrepair, ours, readers
from graph_retry.output import parse_output


def same(left: Any, right: Any) -> bool:
    """Compare with types: `True`, `1` and `1.0` differ; `NaN` is itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right or (left != left and right != right))  # noqa: PLR0124 - NaN


# Classes of damage by the modes of the corpus that belong to them.
CLASSES = {
    "HTML entities": ("exact/html_entities",),
    "several fences": ("exact/fences_",),
    "zero-width characters": ("exact/zero_width",),
    "invalid escapes": ("exact/escape_",),
    "values in Markdown": ("exact/markdown_",),
    "comments that annotate": ("exact/comment_",),
    "`=` for `:`": ("exact/equals_",),
    "two kinds at once": ("exact/combined_",),
    "all that is repairable": ("exact/",),
    "data left out": ("lossy/elided_", "lossy/empty_slot", "lossy/placeholder"),
    "cut off": ("lossy/truncated",),
}


# The readers whose classes are printed.
COMPARED = {"graph_retry", "json_repair", "LangChain JsonOutputParser", "json5", "npm jsonrepair"}


def percent(part: int, whole: int) -> str:
    """Write a share; what is not all is never rounded to 100 %, and what is not none never to 0."""
    if not whole:
        return "–"
    share = 100 * part / whole
    return f"{share:.0f}" if part in {0, whole} else f"{min(max(share, 0.1), 99.9):.1f}"


def verdicts(cases: list[Case], outcomes: list[Outcome]) -> Counter[tuple[str, str]]:
    """Count by group, and by group and mode: cases, exact values, and values that are wrong."""
    count: Counter[tuple[str, str]] = Counter()
    for case, (ok, value) in zip(cases, outcomes, strict=True):
        readable = case.group in {"exact", "damage"}
        verdict = "refused"
        if ok:
            verdict = "exact" if readable and same(value, case.value) else "wrong"
        for name in (case.group, f"{case.group}/{case.mode}"):
            count[name, "cases"] += 1
            count[name, verdict] += 1
    return count


def print_groups(counts: dict[str, Counter[tuple[str, str]]]) -> None:
    """Print a row for each reader."""
    columns = {
        "repairable: exact": ("exact", "exact"),
        "wrong": ("exact", "wrong"),
        "data missing: value given": ("lossy", "wrong"),
        "no JSON: value given": ("none", "wrong"),
        "one token damaged: exact": ("damage", "exact"),
        "wrong ": ("damage", "wrong"),
    }
    rows = (
        [
            name,
            *(percent(n[group, verdict], n[group, "cases"]) for group, verdict in columns.values()),
        ]
        for name, n in counts.items()
    )
    print(table(["reader, in %", *columns], rows))


def print_classes(counts: dict[str, Counter[tuple[str, str]]]) -> None:
    """Print a row for each class: the exact and the wrong values of each reader."""

    def cell(count: Counter[tuple[str, str]], starts: tuple[str, ...], verdict: str) -> str:
        modes = {name for name, _ in count if name.startswith(starts)}
        whole = sum(count[mode, "cases"] for mode in modes)
        return percent(sum(count[mode, verdict] for mode in modes), whole)

    rows = (
        [
            name,
            *(f"{cell(n, starts, 'exact')} / {cell(n, starts, 'wrong')}" for n in counts.values()),
        ]
        for name, starts in CLASSES.items()
    )
    print(table(["exact / wrong, in %", *counts], rows))


def best(run: Callable[[], object], times: int = 3) -> float:
    """Return the shortest of some runs, in seconds."""
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        spent.append(time.perf_counter() - started)
    return min(spent)


def speed(cases: list[Case], found: dict[str, Callable[..., Outcome]]) -> None:
    """Print the time for the corpus, and for valid JSON beside the standard library."""
    corpus = [case for case in cases if case.group != "damage"]
    rows = []
    for name in ("graph_retry", "json_repair"):
        if name in found:
            reader = found[name]
            took = best(lambda r=reader: [r(case.text, case.complete) for case in corpus])
            rows.append([f"the corpus, {name}", f"{took:.3f} s"])
    rng = random.Random(3)
    small = [json.dumps(document(rng)) for _ in range(200)]
    large = [json.dumps([document(rng) for _ in range(1000)])]
    for name, texts in (("small documents", small), ("one large document", large)):
        theirs = best(lambda t=texts: [json.loads(text) for text in t], 20)
        mine = best(lambda t=texts: [parse_output(text) for text in t], 20)
        rows.append([f"valid JSON, {name}", f"{theirs / mine:.2f} of json.loads' speed"])
    print("\n" + table(["speed (best of 3)", ""], rows))


PATHOLOGICAL = {
    "[ x n": "[", "{ x n": "{", 'quotes x n': '"', '{"a": x n': '{"a":', "a { b x n": "a { b ",
    '["x" x n': '["x" ', "[1] x n": "[1] x ", "objects x n": '{"a": 1}', "<think> x n": "<think>",
}  # fmt: skip


def pathological() -> None:
    """Print how time grows from 10 kB to 1 MB, and what comes out."""
    rows = []
    for name, piece in {**PATHOLOGICAL, "one long string": "", "deep and closed": ""}.items():
        took, outcome = [], ""
        for size in (10_000, 100_000, 1_000_000):
            text = piece * (size // len(piece)) if piece else '{"a": "' + "x" * size + '",}'
            if name == "deep and closed":
                text = "[" * (size // 2) + "]" * (size // 2)
            took.append(best(lambda t=text: ours(t, True), 1))
            parsed = parse_output(text)
            outcome = parsed.failure["kind"] if parsed.failure else "read"
        rows.append([f"`{name}`", *(f"{seconds:.4f}" for seconds in took), outcome])
    print("\n" + table(["seconds for a text of", "10 kB", "100 kB", "1 MB", "outcome"], rows))


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description="Score readers of malformed JSON.")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--each", type=int, default=10, help="cases a mode")
    arguments.add_argument("--damaged", type=int, default=1000, help="damaged documents")
    arguments.add_argument("--only", default="", help="readers whose names start with this")
    arguments.add_argument("--jsonrepair", default=".venv/node_modules/jsonrepair/lib/esm/index.js")
    arguments.add_argument("--speed", action="store_true", help="time the readers, too")
    options = arguments.parse_args()
    cases = build(options.seed, options.each) + damaged(options.seed + 1, options.damaged)
    groups = Counter(case.group for case in cases)
    modes = len({(case.group, case.mode) for case in cases})
    shares = ", ".join(f"{number} {group}" for group, number in groups.items())
    print(f"{len(cases)} cases in {modes} modes (seed {options.seed}): {shares}.\n")
    found, absent = readers()
    found = {name: reader for name, reader in found.items() if name.startswith(options.only)}
    counts = {
        name: verdicts(cases, [reader(case.text, case.complete) for case in cases])
        for name, reader in found.items()
    }
    if not Path(options.jsonrepair).exists():
        absent.append("npm jsonrepair")
    elif "npm jsonrepair".startswith(options.only):
        texts = [case.text for case in cases]
        counts["npm jsonrepair"] = verdicts(cases, [*jsonrepair(texts, options.jsonrepair)])
    print_groups(counts)
    print()
    print_classes({name: counts[name] for name in counts if name in COMPARED})
    if absent:
        print(f"\nNot run, because it is not installed: {', '.join(absent)}.")
    if options.speed:
        speed(cases, found)
        pathological()


if __name__ == "__main__":
    main()
