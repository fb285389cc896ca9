"""Signals that a valid output may be wrong. Each signal returns a confidence and doubtful fields.

A signal does not prove an error. People review the outputs with the lowest confidence.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graph_retry._core.params.fields import fields_of
from graph_retry._core.params.prompt import Prompt
from graph_retry.output import parse_output
from graph_retry.plugins import is_array, is_number, is_object, pointer
from graph_retry.records import Attempt, Doubt
from graph_retry.reviews import alternatives, branch_of, element

_NUMBER = re.compile(r"-?\d+(?:[.,'\u2019 \u00a0\u202f]\d+)*")
_DATE = re.compile(r"(\d{4})-\d\d-(\d\d)(?:T.*)?")
_MOST_DOCUMENTS = 200
"""Maximum number of `{` in a prompt that are tried as the start of a JSON document."""

Leaf = tuple[str, Any]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One valid output, and the data with which a signal judges it."""

    value: Any
    """The output as JSON."""
    input: str
    """The text from which the model took the output."""
    schema: Any
    """The JSON Schema of the output, or None."""
    attempt: Attempt
    computed: frozenset[str]
    """Names of output fields whose values need not occur in the input."""
    second: Any = None
    """Another answer to the same request, as JSON."""


Signal = Callable[[Seen], tuple[float | None, list[Doubt]]]
"""A function that returns the confidence (0 to 1, None if unknown) and the doubtful fields."""


def counted_doubts(doubts: list[Doubt]) -> tuple[float, list[Doubt]]:
    """Return a confidence that falls with each doubt (1, 1/2, 1/3, …), and the doubts."""
    return 1 / (1 + len(doubts)), doubts


def not_in_input(seen: Seen) -> tuple[float | None, list[Doubt]]:
    """Doubt values that do not occur in the input, such as values from an example in the prompt.

    Booleans, computed fields, and the values of the schema's enums and constants are not checked.
    Numbers are compared by value. Of a date, only the year and the day must occur, because the
    month may be written as a word.
    """
    closed, text, numbers = set(_closed(seen.schema)), _plain(seen.input), _numbers(seen.input)
    return counted_doubts(
        [
            Doubt(path=path, why="not in the input")
            for path, value in leaves(seen.value)
            if not seen.computed.intersection(path.split("/"))
            and value not in closed
            and not _occurs(value, text, numbers)
        ]
    )


def at_edge(seen: Seen) -> tuple[float | None, list[Doubt]]:
    """Doubt numbers and lengths that equal a limit of the schema."""
    paths = _edges(seen.value, seen.schema, seen.schema)
    return counted_doubts([Doubt(path=path, why="exactly at its limit") for path in paths])


def by_logprob(seen: Seen) -> tuple[float | None, list[Doubt]]:
    """Return the geometric mean of the probabilities of the answer's tokens; None if unknown."""
    mean = seen.attempt.get("logprob")
    return (None if mean is None else math.exp(mean)), []


def differs(seen: Seen) -> tuple[float | None, list[Doubt]]:
    """Doubt the fields whose values differ in a second answer to the same request."""
    if seen.second is None:
        return None, []
    one, two = dict(leaves(seen.value)), dict(leaves(seen.second))
    paths = [path for path in {**one, **two} if one.get(path) != two.get(path)]
    return counted_doubts([Doubt(path=path, why="differs in a second answer") for path in paths])


SIGNALS: dict[str, Signal] = {
    "input": not_in_input,
    "edge": at_edge,
    "logprob": by_logprob,
    "second": differs,
}
"""The signals that a gate knows by name. Any other name means a field of the output."""


def leaves(value: Any, path: str = "") -> Iterator[Leaf]:
    """Yield the numbers and the non-empty texts in a value, each with its JSON Pointer."""
    if is_object(value):
        for key, inner in value.items():
            yield from leaves(inner, path + pointer([key]))
    elif is_array(value):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}/{index}")
    elif is_number(value) or (isinstance(value, str) and value):
        yield path, value


def input_of(params: Any, given: str | Callable[[Any], str] | None, value: Any) -> str:
    """Return the text from which the model took an output.

    `given` is a function of the params or the name of a field. If it is None, the text is the
    prompt, or all params as JSON if they have no prompt. JSON documents in this text that only show
    how to answer are left out: a schema, and examples that have a field of the output.
    """
    if callable(given):
        return given(params)
    if given is not None:
        return Prompt(params, given, owner="Gate").text
    fields = {"": params} if isinstance(params, str) else fields_of(params)
    whole = (
        json.dumps(params, ensure_ascii=False, default=str)
        if Prompt.found_in(fields) is None
        else Prompt(params).text
    )
    return _without_examples(whole, value)


def _without_examples(text: str, value: Any) -> str:
    keys, decoder = set(value) if is_object(value) else set[str](), json.JSONDecoder()
    kept, start, tries = list[str](), 0, 0
    while (begin := text.find("{", start)) >= 0 and tries < _MOST_DOCUMENTS:
        kept.append(text[start:begin])
        start, tries = begin + 1, tries + 1
        try:
            found, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            kept.append("{")
            continue
        is_example = "properties" in found or not keys.isdisjoint(found)
        kept.append(" " if is_example else text[begin:end])
        start = end
    return "".join([*kept, text[start:]])


def _occurs(value: Any, text: str, numbers: set[float]) -> bool:
    if is_number(value):
        return float(value) in numbers or float(-value) in numbers
    if date := _DATE.fullmatch(value):
        return all(float(part) in numbers for part in date.groups())
    return (_plain(value) or "\0") in text


def _plain(text: str) -> str:
    """Return only the letters and digits of a text, normalized (NFKC) and without case."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _numbers(text: str) -> set[float]:
    """Return all values that the numbers in a text may have. For example, `2.138` may mean 2138."""
    found = set[float]()
    for match in _NUMBER.finditer(text):
        parts = re.split(r"([^\d-])", match[0])
        marks, digits = parts[1::2], parts[::2]
        found.update(float(part) for part in digits)
        found.add(float("".join(digits)))
        # The last `.` or `,` may be the decimal mark if it occurs only once.
        if marks and marks[-1] in ".," and marks.count(marks[-1]) == 1:
            found.add(float(f"{''.join(digits[:-1])}.{digits[-1]}"))
    return found


def _closed(schema: Any) -> Iterator[Any]:
    """Yield the values of all enums and constants in a schema."""
    if is_object(schema):
        for key, inner in schema.items():
            if key == "enum" and is_array(inner):
                yield from (each for each in inner if isinstance(each, str | int | float))
            elif key == "const" and isinstance(inner, str | int | float):
                yield inner
            else:
                yield from _closed(inner)
    elif is_array(schema):
        for inner in schema:
            yield from _closed(inner)


_LIMITS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")


def _edges(value: Any, schema: Any, root: Any, path: str = "") -> Iterator[str]:
    branch = branch_of(alternatives(schema, root), value)
    size = len(value) if isinstance(value, str) or is_array(value) else value
    if is_number(size) and size in [branch.get(limit) for limit in _LIMITS]:
        yield path
    if is_object(value):
        named: Any = branch.get("properties") or {}
        for key, inner in value.items():
            yield from _edges(inner, named.get(key), root, path + pointer([key]))
    elif is_array(value):
        for index, inner in enumerate(value):
            yield from _edges(inner, element(branch, index, root), root, f"{path}/{index}")


def output_of(attempt: Attempt) -> Any:
    """Return the valid output of an attempt's record."""
    raw = attempt["raw"] or {}
    return raw["value"] if "value" in raw else (attempt["parsed"] or {}).get("value")


def as_value(answer: Any, like: Any) -> Any:
    """Convert a second answer to a JSON value; None for a text that cannot be read as JSON.

    If the first answer `like` is a text, the second answer stays as it is.
    """
    if not isinstance(answer, str) or isinstance(like, str):
        return answer
    read = parse_output(answer)
    return None if read.failure is not None else read.value


def names(of: str | Sequence[str]) -> tuple[str, ...]:
    """Return one name or several names of signals as a tuple."""
    return (of,) if isinstance(of, str) else tuple(of)
