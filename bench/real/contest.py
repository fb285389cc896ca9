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
from bench.real.rivals import RIVALS
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
WAYS: dict[str, Lane] = {**OURS, **RIVALS}
FEW = (
    "graph-retry, constrained, schema in the prompt",
    "LangChain with_structured_output (constrained)",
    "LangChain RetryWithErrorOutputParser",
)
"""Ways that do one input of each family: the second sends what `NativeOutput` sends, once, and the
third takes several times as long."""
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


def figures(name: str, rows: Rows, ours: Mapping[str, bool]) -> list[str]:
    """Return a row of the table; `ours` is whether we were right, by input."""
    right = sum(outcome.is_right for _, outcome in rows)
    valid = sum(outcome.is_valid for _, outcome in rows)
    requests = sum(len(outcome.answers) for _, outcome in rows)
    tokens = sum(outcome.tokens for _, outcome in rows)
    only_ours = sum(ours[case.id] and not outcome.is_right for case, outcome in rows)
    only_it = sum(outcome.is_right and not ours[case.id] for case, outcome in rows)
    shares = interval(valid, len(rows)), interval(right, len(rows)), interval(valid - right, valid)
    per_right = [f"{requests / right:.1f}", f"{tokens / right:,.0f}"] if right else ["none"] * 2
    return [name, str(len(rows)), *shares, *per_right, f"{only_ours} : {only_it}"]


def tables(made: Mapping[str, Rows]) -> Iterator[str]:
    """Yield a table of all inputs, and the numbers of right answers by family."""
    rivals = [name for name in OURS if name not in FEW]
    best = max(rivals, key=lambda name: sum(outcome.is_right for _, outcome in made[name]))
    ours = {case.id: outcome.is_right for case, outcome in made[best]}
    columns = ["way", "n", "valid", "right", "wrong, of the valid", "requests per right"]
    columns += ["tokens per right", f"right only {best} : only this"]
    yield table(columns, [figures(name, rows, ours) for name, rows in made.items()])
    names = [name for name in FAMILIES if any(case.family == name for case, _ in made[best])]
    yield table(
        ["right", *names],
        [
            [
                way,
                *(
                    str(sum(outcome.is_right for case, outcome in rows if case.family == name))
                    for name in names
                ),
            ]
            for way, rows in made.items()
        ],
    )


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
