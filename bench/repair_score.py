"""Score readers on the corpus, on damaged documents, on speed and on pathological texts.

Run `python -m bench.repair_score [--seed N] [--each N] [--jsonrepair PATH/lib/esm/index.js]`.
A reader that is not installed is reported as absent.
"""

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

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


def percent(part: int, whole: int) -> str:
    """Write a share."""
    return f"{100 * part / whole:6.2f}" if whole else "   n/a"


def score(name: str, cases: list[Case], outcomes: Iterable[Outcome]) -> None:
    """Print one row: exact and corrupt of `exact`, values given for `lossy` and `none`."""
    count: Counter[str] = Counter()
    for case, (ok, value) in zip(cases, outcomes, strict=True):
        count[case.group] += 1
        if case.group in {"exact", "damage"} and ok:
            count[case.group, same(value, case.value)] += 1
        elif ok:
            count[case.group, False] += 1
    cells = [
        percent(count["exact", True], count["exact"]),
        percent(count["exact", False], count["exact"]),
        percent(count["lossy", False], count["lossy"]),
        percent(count["none", False], count["none"]),
        percent(count["damage", True], count["damage"]),
        percent(count["damage", False], count["damage"]),
    ]
    print(f"{name:32}" + "  ".join(f"{cell:>9}" for cell in cells))


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
    print("\nseconds for the corpus (best of 3)")
    for name in ("graph_retry", "json_repair"):
        if name in found:
            reader = found[name]
            took = best(lambda r=reader: [r(case.text, case.complete) for case in corpus])
            print(f"  {name:14} {took:.3f}")
    print("valid JSON: speed of graph_retry as a share of json.loads")
    rng = random.Random(3)
    small = [json.dumps(document(rng)) for _ in range(200)]
    large = [json.dumps([document(rng) for _ in range(1000)])]
    for name, texts in (("small documents", small), ("one large document", large)):
        theirs = best(lambda t=texts: [json.loads(text) for text in t], 20)
        mine = best(lambda t=texts: [parse_output(text) for text in t], 20)
        print(f"  {name:20} {theirs / mine:.2f}")


PATHOLOGICAL = {
    "[ x n": "[", "{ x n": "{", 'quotes x n': '"', '{"a": x n': '{"a":', "a { b x n": "a { b ",
    '["x" x n': '["x" ', "[1] x n": "[1] x ", "objects x n": '{"a": 1}', "<think> x n": "<think>",
}  # fmt: skip


def pathological() -> None:
    """Print how time grows from 10 kB to 1 MB, and what comes out."""
    print("\nseconds for                        10 kB    100 kB      1 MB  outcome")
    for name, piece in {**PATHOLOGICAL, "one long string": "", "deep and closed": ""}.items():
        took, outcome = [], ""
        for size in (10_000, 100_000, 1_000_000):
            text = piece * (size // len(piece)) if piece else '{"a": "' + "x" * size + '",}'
            if name == "deep and closed":
                text = "[" * (size // 2) + "]" * (size // 2)
            took.append(best(lambda t=text: ours(t, True), 1))
            parsed = parse_output(text)
            outcome = parsed.failure["kind"] if parsed.failure else "read"
        print(f"{name:30}" + "".join(f"{seconds:10.4f}" for seconds in took) + f"  {outcome}")


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description="Score readers of malformed JSON.")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--each", type=int, default=40, help="cases a mode")
    arguments.add_argument("--damaged", type=int, default=5000, help="damaged documents")
    arguments.add_argument("--jsonrepair", default="node_modules/jsonrepair/lib/esm/index.js")
    options = arguments.parse_args()
    cases = build(options.seed, options.each) + damaged(options.seed + 1, options.damaged)
    groups = Counter(case.group for case in cases)
    modes = len({(case.group, case.mode) for case in cases})
    print(f"{len(cases)} cases in {modes} modes: {dict(groups)}; all figures in %")
    heads = ["exact", "corrupt", "lossy", "none", "damage", "damage"]
    print(" " * 32 + "  ".join(f"{head:>9}" for head in heads))
    heads = ["", "", "accepted", "invented", "right", "wrong"]
    print(" " * 32 + "  ".join(f"{head:>9}" for head in heads))
    found, absent = readers()
    for name, reader in found.items():
        score(name, cases, [reader(case.text, case.complete) for case in cases])
    if Path(options.jsonrepair).exists():
        texts = [case.text for case in cases]
        score("npm jsonrepair", cases, jsonrepair(texts, options.jsonrepair))
    else:
        absent.append("npm jsonrepair")
    if absent:
        print(f"absent: {', '.join(absent)}")
    speed(cases, found)
    pathological()


if __name__ == "__main__":
    main()
