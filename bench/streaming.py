"""What judging an answer while it comes costs, against parsing it once and checking it whole.

An answer of growing length comes in tokens of four characters. The last column is the time for
each character: where it stays, the cost is linear. Run: `python -m bench.streaming`
"""

import json
import statistics
import time
from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import from_json

from bench.markdown import table
from graph_retry._core.output.partial import growing
from graph_retry._core.output.partial.early_end import Watch
from graph_retry.output import Validator, build_validator, parse_output

SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROUNDS = 3


class Item(BaseModel):
    """One of many."""

    model_config = ConfigDict(extra="forbid")

    id: int
    kind: Literal["book", "film"]
    title: str
    tags: list[str]


class Items(BaseModel):
    """What is asked for."""

    items: list[Item]


def answer(size: int) -> str:
    """Write a valid answer of about this many characters."""
    item = {"id": 0, "kind": "book", "title": "Notes on the engine", "tags": ["a", "b"]}
    count = max(1, size // len(json.dumps(item)))
    return json.dumps({"items": [{**item, "id": number} for number in range(count)]})


def whole(validator: Validator, text: str) -> None:
    """Read and validate the whole text."""
    assert validator.check(parse_output(text).value).ok


def streamed(validator: Validator, text: str) -> None:
    """Judge the text while it comes in tokens."""
    watch = Watch(validator, "standard")
    for start in range(0, len(text), 4):
        watch.add(text[start : start + 4])
    assert watch.failure is None


def seconds(work: Callable[[Validator, str], None], validator: Validator, text: str) -> float:
    """Return the median time of a few runs."""
    times: list[float] = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work(validator, text)
        times.append(time.process_time() - started)
    return statistics.median(times)


def parsed(_: Validator, text: str) -> None:
    """Parse the whole text and no more."""
    from_json(text)


def main() -> None:
    """Print a row for each kind of type and each length."""
    rows = []
    for name, output in (("pydantic", Items), ("schema", Items.model_json_schema())):
        validator = build_validator(output)
        for size in SIZES[: 4 if name == "pydantic" else 3]:
            text = answer(size)
            works = (parsed, whole, streamed)
            times = [seconds(work, validator, text) for work in works]
            read = characters_read(validator, text) / len(text)
            cells = [f"{1000 * time:,.2f} ms" for time in times]
            each = f"{times[-1] * 1e9 / len(text):,.0f}"
            rows.append([f"{name}, {len(text):,}", *cells, f"{read:.1f}", each])
    heads = ["type, characters", "parse once", "parse and check once", "judge while it comes"]
    print(table([*heads, "characters read, of its own", "ns a character"], rows))


def characters_read(validator: Validator, text: str) -> int:
    """Count the characters that all readings of a streamed text have together."""
    lengths: list[int] = []
    original = growing.from_json

    def counted(part: str, **options: str) -> object:
        lengths.append(len(part))
        return original(part, **options)

    vars(growing)["from_json"] = counted
    try:
        streamed(validator, text)
    finally:
        vars(growing)["from_json"] = original
    return sum(lengths)


if __name__ == "__main__":
    main()
