"""Count streamed answers that are stopped although the whole of them would have been accepted.

Each document is held against the narrowest type there is: of itself, every scalar a constant, every
other field forbidden, as a JSON Schema or as pydantic models. It comes in pieces cut at random
places, plain or fenced. Damaged documents are those of `bench.repair_damage`; they count where the
reader of the whole mends them. With `--every` the text is judged at every character.
Run: `python -m bench.false_stops [--seed N] [--valid N] [--damaged N] [--every]`
"""

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, create_model

from bench.repair_damage import cases
from bench.repair_documents import document
from graph_retry._core.output.partial import growing
from graph_retry._core.output.partial.early_end import Watch
from graph_retry.output import Validator, build_validator, parse_output
from graph_retry.records import RepairLevel

LEVELS: tuple[RepairLevel, ...] = get_args(RepairLevel)
WRAPPERS = {
    "plain": "{}",
    "fenced": "```json\n{}\n```",
    "bare fence": "```\n{}\n```",
    "after thoughts": "<think>\nPerhaps {{'a': 1}}?\n</think>\n\n{}",
    "white space": " \n{}\n\n",
    "in prose": "Here it is:\n\n{}\n\nAnything else?",
}
STRICT_WRAPPERS = {"none": ("plain",), "minimal": ("plain", "fenced", "bare fence", "white space")}


def schema_of(value: Any) -> dict[str, Any]:
    """Write the JSON Schema that allows this value alone."""
    if isinstance(value, dict):
        members = {key: schema_of(child) for key, child in value.items()}
        closed = {"additionalProperties": False, "required": [*value]}
        return {"type": "object", "properties": members, **closed}
    if isinstance(value, list):
        bounds = {"minItems": len(value), "maxItems": len(value), "items": False}
        first = {"prefixItems": [schema_of(item) for item in value]} if value else {}
        return {"type": "array", **first, **bounds}
    return {"const": value}


def type_of(value: Any) -> Any:
    """Make the pydantic type that allows this value alone."""
    if isinstance(value, dict):
        fields: dict[str, Any] = {
            f"field_{n}": (type_of(child), Field(alias=key))
            for n, (key, child) in enumerate(value.items())
        }
        return create_model("Only", __config__=ConfigDict(extra="forbid"), **fields)
    if isinstance(value, list):
        return tuple[tuple(type_of(item) for item in value)]  # type: ignore[misc]
    if isinstance(value, float):
        return Annotated[float, Field(ge=value, le=value)]
    return None if value is None else Literal[value]  # type: ignore[valid-type]


def pieces(rng: random.Random, text: str) -> Iterator[str]:
    """Cut a text at random places, finely or coarsely."""
    size, start = rng.choice([1, 3, 10, 50, 300]), 0
    while start < len(text):
        end = start + rng.randint(1, 2 * size)
        yield text[start:end]
        start = end


def stopped(
    rng: random.Random, text: str, validator: Validator, level: RepairLevel
) -> Watch | None:
    """Stream a text; return the watch that stopped it, or None."""
    watch = Watch(validator, level)
    for piece in pieces(rng, text):
        watch.add(piece)
        if watch.failure is not None:
            return watch
    return None


def narrow(rng: random.Random, value: Any) -> Validator:
    """Make a validator of one of the two kinds that allows this value alone."""
    return build_validator(rng.choice([schema_of, type_of])(value))


def run_valid(seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """Stream valid documents; return how they were wrapped, and those that were stopped."""
    rng, drawn, wrong = random.Random(seed), Counter[str](), list[str]()
    for _ in range(count):
        value, level = document(rng), rng.choice(LEVELS)
        wrapper = rng.choice(STRICT_WRAPPERS.get(level, tuple(WRAPPERS)))
        indent = rng.choice([None, 1, 4])
        body = json.dumps(value, indent=indent, ensure_ascii=rng.random() < 0.5)
        text = WRAPPERS[wrapper].format(body)
        drawn[wrapper] += 1
        watch = stopped(rng, text, narrow(rng, value), level)
        if watch is not None:
            wrong.append(f"{level}, {wrapper}: {text!r}\n{watch.failure}")
    return drawn, wrong


def run_damaged(seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """Stream damaged documents; count what became of them, and list false stops."""
    rng, drawn, wrong = random.Random(seed), Counter[str](), list[str]()
    for number, case in enumerate(cases(rng, Counter())):
        if number == count:
            break
        validator = narrow(rng, case.value)
        watch = stopped(rng, case.text, validator, "standard")
        parsed = parse_output(case.text, complete=case.complete)
        whole = "accepted" if parsed.ok and validator.check(parsed.value).ok else "refused"
        drawn[f"{whole} as a whole, {'not stopped' if watch is None else 'stopped'}"] += 1
        if watch is not None and whole == "accepted":
            wrong.append(f"{case.kind}, {case.shape}: {case.text!r}\n{watch.failure}")
    return drawn, wrong


def run_foreign(seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """Stream documents that another type is wanted of, which shares some of their keys."""
    rng, drawn, wrong = random.Random(seed), Counter[str](), list[str]()
    for _ in range(count):
        value, other = document(rng), document(rng)
        validator, text = narrow(rng, other), json.dumps(value)
        watch = stopped(rng, text, validator, "standard")
        is_accepted = validator.check(value).ok
        drawn["not stopped" if watch is None else "stopped"] += 1
        if watch is not None and is_accepted:
            wrong.append(f"{text!r}\n{watch.failure}")
    return drawn, wrong


def main() -> None:
    """Print what was drawn, and every false stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--valid", type=int, default=10_000)
    parser.add_argument("--damaged", type=int, default=10_000)
    parser.add_argument("--every", action="store_true")
    options = parser.parse_args()
    if options.every:
        growing._STEP, growing._GROWTH = 1, 10**9  # noqa: SLF001
    for name, run, count in (
        ("valid", run_valid, options.valid),
        ("foreign", run_foreign, options.valid // 10),
        ("damaged", run_damaged, options.damaged),
    ):
        started = time.perf_counter()
        drawn, wrong = run(options.seed, count)
        spent = time.perf_counter() - started
        print(f"{count:,} {name} documents, {spent:.0f} s: {len(wrong)} false stops")
        for kind, number in sorted(drawn.items()):
            print(f"  {number:6,} {kind}")
        for text in wrong[:10]:
            print(text)


if __name__ == "__main__":
    main()
