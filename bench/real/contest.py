"""This library and its contenders on the same inputs, with two requests at most for each.

Run: `OPENAI_BASE_URL=http://127.0.0.1:8095/v1 python -m bench.real.contest [FROM TO]` asks for the
inputs with these numbers, input by input through all ways, so that a stop leaves a fair table. It
goes on where it stopped; without an address, only what is kept is read.
"""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress

from bench.markdown import table
from bench.real.__main__ import Rows, interval
from bench.real.families import FAMILIES, cases
from bench.real.lanes import Lane, lane
from bench.real.prompts import bare
from bench.real.rivals import AFTER, RIVALS
from bench.real.served import Served, Unasked
from graph_retry.hooks import feedback

OURS: dict[str, Lane] = {
    "graph-retry, text": lane(feedback=feedback(), auto_retries=1),
    "graph-retry, constrained, schema in the prompt": lane(
        feedback=feedback(), auto_retries=1, constrained=True
    ),
    "graph-retry, constrained": lane(
        feedback=feedback(), auto_retries=1, constrained=True, prompt=bare
    ),
}
"""As docs/automation.md advises, without a person."""
WAYS: dict[str, Lane] = {**OURS, **RIVALS, **AFTER}
FEW = (
    "graph-retry, constrained, schema in the prompt",
    "LangChain with_structured_output (constrained)",
    "LangChain RetryWithErrorOutputParser",
)
"""Ways that do one input of each family: the second sends what `NativeOutput` sends, once, and the
third takes several times as long."""
CONSTRAINED, TEXT = "graph-retry, constrained", "graph-retry, text"
PAIRS: dict[str, str] = {name: TEXT for name in RIVALS if "Parser" in name}
PAIRS |= {name: CONSTRAINED for name in RIVALS if "constrained" in name}
PAIRS |= {
    rival: ours for rival in RIVALS for ours in AFTER if ours.endswith(rival.partition(" (")[0])
}
"""The way of this library that a contender is compared with; all but the parser's begin alike."""
UNSEEN = (12, 18)
"""Numbers of inputs on which nothing was chosen."""


def played(served: Served, first: int, end: int) -> Iterator[dict[str, Rows]]:
    """Yield what each way made of the inputs so far, after each input that all of them did."""
    made: dict[str, Rows] = {name: [] for name in WAYS}
    for case in cases(end):
        if case.number < first:
            continue
        with suppress(Unasked):
            outcomes = {
                name: way(served, case)
                for name, way in WAYS.items()
                if case.number == first or name not in FEW
            }
            for name, outcome in outcomes.items():
                made[name].append((case, outcome))
            yield made


def figures(name: str, made: Mapping[str, Rows]) -> list[str]:
    """Return a row of the table."""
    rows, pair = made[name], "-"
    right = sum(outcome.is_right for _, outcome in rows)
    valid = sum(outcome.is_valid for _, outcome in rows)
    requests = sum(len(outcome.answers) for _, outcome in rows)
    tokens = sum(outcome.tokens for _, outcome in rows)
    if name in PAIRS:
        ours = {case.id: outcome.is_right for case, outcome in made[PAIRS[name]]}
        both = [(ours[case.id], outcome.is_right) for case, outcome in rows]
        pair = f"{both.count((True, False))} : {both.count((False, True))}"
    shares = interval(valid, len(rows)), interval(right, len(rows)), str(valid - right)
    per_right = [f"{requests / right:.1f}", f"{tokens / right:,.0f}"] if right else ["none"] * 2
    return [name, str(len(rows)), *shares, *per_right, pair]


def tables(made: Mapping[str, Rows]) -> Iterator[str]:
    """Yield a table of all inputs, and the numbers of right answers by family."""
    columns = ["way", "n", "valid", "right", "valid but wrong", "requests per right"]
    columns += ["tokens per right", "right: only graph-retry, only this"]
    yield table(columns, [figures(name, made) for name in made])
    names = [name for name in FAMILIES if any(case.family == name for case, _ in made[TEXT])]
    rows = [
        [way, *(f"{sum(o.is_right for case, o in rows if case.family == name)}" for name in names)]
        for way, rows in made.items()
    ]
    yield table(["right", *names], rows)


def main(first: int = UNSEEN[0], end: int = UNSEEN[1]) -> None:
    """Ask, and print the tables."""
    logging.disable(logging.WARNING)
    made: dict[str, Rows] = {}
    for made in played(Served(os.environ.get("OPENAI_BASE_URL")), first, end):
        case = max((rows[-1][0] for rows in made.values()), key=lambda one: one.number)
        done = [rows[-1][1] for rows in made.values() if rows[-1][0] == case]
        marks = "".join("+" if one.is_right else "x" if one.is_valid else "-" for one in done)
        print(case.id, marks, file=sys.stderr, flush=True)
    if made:
        print("\n\n".join(tables(made)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
