"""Ask the model (or read what it was asked before), and print the tables.

Run: `OPENAI_BASE_URL=http://127.0.0.1:8095/v1 python -m bench.real [EACH]`. Without an address,
only kept completions are read. It can be stopped, and goes on where it stopped.
"""

import asyncio
import inspect
import logging
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from pydantic import TypeAdapter

from bench.markdown import table
from bench.real.families import COMPUTED, Case, cases
from bench.real.lanes import ONCE, RETRIES, SECOND, Lane, Outcome
from bench.real.prompts import first
from bench.real.served import Served, Unasked
from graph_retry.hooks import Gate

Rows = list[tuple[Case, Outcome]]


def interval(hits: int, of: int) -> str:
    """Return a share with Wilson's interval of 95 %, in per cent."""
    if not of:
        return "unknown"
    z, share = 1.96, hits / of
    middle = share + z * z / (2 * of)
    width = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = (100 * (middle + sign * width) / (1 + z * z / of) for sign in (-1, 1))
    return f"{hits} ({100 * share:.0f} % [{low:.0f}, {high:.0f}])"


def rows_of(served: Served, lane: Lane, given: Sequence[Case], *, retried: bool = False) -> Rows:
    """Run a lane on the cases that are kept or can be asked; of retries, the refused ones."""
    made: Rows = []
    for case in given:
        with suppress(Unasked):
            outcome = lane(served, case)
            if not retried or len(outcome.answers) > 1:
                made.append((case, outcome))
    return made


def figures(name: str, rows: Rows) -> list[str]:
    """Return a row of the table."""
    right = sum(outcome.is_right for _, outcome in rows)
    valid = sum(outcome.is_valid for _, outcome in rows)
    same = sum(
        len({answer["text"].strip() for answer in outcome.answers}) < len(outcome.answers)
        for _, outcome in rows
    )
    tokens = sum(outcome.tokens for _, outcome in rows)
    per_right = f"{tokens / right:,.0f}" if right else "none"
    shares = interval(valid, len(rows)), interval(right, len(rows))
    return [name, str(len(rows)), *shares, str(valid - right), str(same), per_right]


async def _verdict(gate: Gate, record: Any) -> Any:
    said: Any = gate(record)
    return await said if inspect.isawaitable(said) else said


def asked_by(gate: Gate, rows: Rows) -> Iterator[tuple[bool, bool]]:
    """Yield for each valid answer whether it is wrong, and whether the gate asks."""
    for case, outcome in rows:
        if outcome.is_valid:
            (attempt,) = outcome.attempts
            record: Any = {
                **attempt,
                "idempotency_key": case.id,  # It draws among equal confidences.
                "raw": {"value": (attempt["parsed"] or {})["value"]},
                "params": {"prompt": first(case), "case": case},
                "output_schema": TypeAdapter(case.output).json_schema(),
            }
            yield not outcome.is_right, bool(asyncio.run(_verdict(gate, record))["ask"])


GATES: dict[str, tuple[str, ...]] = {
    "not in the input": ("input",),
    "at a limit": ("edge",),
    "log-probability": ("logprob",),
    "second answer": ("second",),
    "input and limit": ("input", "edge"),
    "input, limit, log-probability": ("input", "edge", "logprob"),
    "all four": ("input", "edge", "logprob", "second"),
}


def main(each: int = 12) -> None:
    """Print the tables."""
    logging.disable(logging.WARNING)
    served, given = Served(os.environ.get("OPENAI_BASE_URL")), [*cases(each)]
    once = {name: rows_of(served, lane, given) for name, lane in ONCE.items()}
    lines = [figures(f"one request, {name}", rows) for name, rows in once.items()]
    lines += [
        figures(f"a second: {name}", rows_of(served, lane, given, retried=True))
        for name, lane in RETRIES.items()
    ]
    columns = [
        "way",
        "n",
        "valid",
        "right",
        "valid but wrong",
        "same text",
        "tokens per right",
    ]
    print(table(columns, lines))

    def again(attempt: Any) -> str:
        (answer,) = SECOND(served, attempt["params"]["case"]).answers
        return answer["text"]

    lines = []
    for is_for_choosing in (True, False):
        rows = [row for row in once["constrained"] if row[0].is_for_choosing == is_for_choosing]
        rows = [row for row in rows if row[1].is_valid and rows_of(served, SECOND, [row[0]])]
        for (name, of), share in product(GATES.items(), (0.2, 0.3)):
            second = again if "second" in of else None
            gate = Gate(share=share, of=of, second=second, input=case_text, computed=COMPUTED)
            [*asked_by(gate, rows)]  # The gate learns what is usual.
            judged = [*asked_by(gate, rows)]
            wrong = sum(is_wrong for is_wrong, _ in judged)
            caught = sum(is_wrong and asks for is_wrong, asks in judged)
            asked = sum(asks for _, asks in judged)
            part = "choosing" if is_for_choosing else "showing"
            told = [part, name, f"{share:.0%}", str(len(judged)), str(asked)]
            lines.append([*told, interval(caught, wrong)])
    print(table(["families", "signals", "share", "valid n", "asked", "wrong ones caught"], lines))


def case_text(params: Any) -> str:
    """Return the text of the case that the params ask about."""
    return str(params["case"].text)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
