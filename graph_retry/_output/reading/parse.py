"""The entry points of reading: parse or repair a model's output, or extract a part of it."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from graph_retry._arguments import checked
from graph_retry._output.reading import (
    Document,
    ParsedOutput,
    Refusal,
    Unreadable,
    Wanted,
    repair,
)
from graph_retry._output.reading.lexis import EDGES
from graph_retry._output.reading.strict import strict_value
from graph_retry._patterns import lazy
from graph_retry.records import RepairLevel

_AROUND = {"surroundings", "code_fence", "white_space", "repeated", "chosen"}
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_FENCE = lazy(r"(?ms)^ *(`{3,}|~{3,}) *([^\s`]*)[^\n`]*\n(.*?)(?:\n?^ *\1[`~]* *$|\Z)")
_FENCE_LINE = lazy(r"(`{3,}|~{3,})[ \t]*[\w+#.\-]*\s")
_STRING_OR_COMMA = lazy(r"\"(?:[^\"\\]|\\.)*+\"?|,(?=\s*[}\]])", re.DOTALL)


@checked
def parse_output(
    text: str,
    level: RepairLevel = "standard",
    *,
    complete: bool | None = None,
    wants_list: bool | None = None,
    fits: Callable[[Any], bool] | None = None,
) -> ParsedOutput:
    """Read the JSON value in a model's output, losslessly or not at all.

    Strict JSON is read as the standard library does, with three exceptions. A key with two
    different values is refused. `NaN` and `Infinity` are read as floats from `standard` on, with a
    repair. A string that holds a JSON document gives that document.

    Args:
        text: The model's output.
        level: `none` reads strict JSON only. `minimal` also removes one fence around the whole
            text, white space and invisible characters. `standard` reads every text with one
            certain reading. `aggressive` may also guess, and then sets `lossless` to false.
        complete: Whether the model finished (`True`), was cut off (`False`), or this is unknown.
        wants_list: `True` if a list is wanted, `False` if one value is. Several calls in tags make
            a list, and are refused if one value is wanted.
        fits: Judges the values if several answers differ. If exactly one fits, it is the answer.

    Raises:
        TypeError: If `text` is not a string.
        ValueError: If `level` is none of the four levels.

    Example:
        >>> parse_output("Sure: {'total': 3,}").value
        {'total': 3}
        >>> refused = parse_output('{"items": [1, 2, ...]}').failure
        >>> refused and refused["kind"]
        'elided'
    """
    wanted = Wanted(complete, wants_list, fits)
    try:
        value = strict_value(text)
    except (ValueError, RecursionError):
        pass
    else:
        if type(value) is str:
            return _in_string(value, level, wanted) or ParsedOutput(True, value, text)
        if complete is not False or type(value) not in {int, float}:
            return ParsedOutput(True, value, text, [])
    try:
        read = _read(text, level, wanted)
        is_json = {each["kind"] for each in read.repairs} <= _AROUND
        written = text[read.start : read.end] if is_json else _dump(read.value)
        return ParsedOutput(True, read.value, written, read.repairs)
    except Unreadable as error:
        refusal = error.refusal
    except RecursionError:
        refusal = Unreadable("too_deep", 0, "Nested too deeply.").refusal
    return _refused(text, level, refusal)


@checked
def repair_output(text: str, level: RepairLevel = "standard") -> str:
    r"""Return the JSON that `text` holds, or `text` unchanged if it cannot be read.

    Example:
        >>> repair_output("```json\n{a: 1}\n```")
        '{"a": 1}'
    """
    return parse_output(text, level).text


@checked
def extract_code_fence(text: str, lang: str | None = None) -> str | None:
    r"""Return the contents of the first code fence, or of the first one tagged `lang`.

    Example:
        >>> extract_code_fence("Here:\n```json\n{}\n```", "json")
        '{}'
    """
    fences = [(fence[2].lower(), fence[3]) for fence in _FENCE.finditer(text)]
    return next((inside for tag, inside in fences if lang is None or tag == lang.lower()), None)


@checked
def extract_json_block(text: str) -> str | None:
    """Return the part of `text` that is its one JSON document, unrepaired; None if it has none.

    Example:
        >>> extract_json_block("Sure: {'a': 1,} Anything else?")
        "{'a': 1,}"
    """
    try:
        document = _answer(text, Wanted())
    except (Unreadable, RecursionError):
        return None
    return text[document.start : document.end]


@checked
def remove_trailing_commas(text: str) -> str:
    """Return `text` without commas before closing brackets; commas in strings stay.

    Example:
        >>> remove_trailing_commas('{"a": [1, 2,], "b": ",]",}')
        '{"a": [1, 2], "b": ",]"}'
    """
    return _STRING_OR_COMMA.sub(lambda match: match[0] if match[0] != "," else "", text)


def _answer(text: str, wanted: Wanted) -> Document:
    from graph_retry._output.reading.answer import answer  # noqa: PLC0415 - strict JSON needs none

    return answer(text, wanted)


def _read(text: str, level: RepairLevel, wanted: Wanted) -> Document:
    """Read a text that is not strict JSON as a whole, or that ends in a possibly cut number."""
    low, high = _bounds(text) if level != "none" else (0, len(text))
    tolerant = level in {"standard", "aggressive"}
    inside = text[low:high]
    try:
        value = strict_value(inside)
    except (ValueError, RecursionError) as error:
        if tolerant:
            return _answer(text, wanted)
        position = low + error.pos if isinstance(error, json.JSONDecodeError) else 0
        raise Unreadable("syntax", position, f"This is no strict JSON: {error!s:.40}.") from None
    if wanted.complete is False and high == len(text) and type(value) in {int, float}:
        raise Unreadable("truncated", high, "The number may go on.")
    kind = "code_fence" if _FENCE_LINE.match(text[:low].lstrip(EDGES)) else "white_space"
    around = [repair(kind, 0, "left out around the answer")]
    inner = _in_string(value, level, wanted) if type(value) is str else None
    if inner is None:
        return Document(low, high, value, around)
    return Document(low, high, inner.value, [*around, *inner.repairs])


def _bounds(text: str) -> tuple[int, int]:
    """Return the start and end of the contents: without white space and a fence around them."""
    trimmed = text.rstrip(EDGES)
    low = len(trimmed) - len(trimmed.lstrip(EDGES))
    if fence := _FENCE_LINE.match(trimmed, low):
        return fence.end(), len(trimmed.removesuffix(fence[1]))
    return low, len(trimmed)


def _in_string(value: str, level: RepairLevel, wanted: Wanted) -> ParsedOutput | None:
    """Read the JSON document inside a JSON string; None if the string holds no document."""
    if level not in {"standard", "aggressive"} or value.lstrip()[:1] not in {"{", "[", "`", '"'}:
        return None
    if value.lstrip()[0] == '"':
        try:
            strict_value(value)
        except ValueError:
            return None
    inner = parse_output(
        value, complete=wanted.complete, wants_list=wanted.is_list, fits=wanted.fits
    )
    if not isinstance(inner.value, (dict, list)):
        return None
    unwrapped = repair("json_in_string", 0, "JSON inside a JSON string")
    return replace(inner, repairs=[unwrapped, *inner.repairs])


def _dump(value: Any) -> str:
    written = _ENCODER.encode(value)
    try:
        written.encode()
    except UnicodeEncodeError:  # UTF-8 cannot encode a lone half of a surrogate pair.
        return json.dumps(value)
    return written


def _refused(text: str, level: RepairLevel, refusal: Refusal) -> ParsedOutput:
    """Return the refusal, or a guessed value if `level` allows this and a guess is possible."""
    may_guess = level == "aggressive" and refusal["kind"] not in {"no_json", "refusal"}
    if may_guess and (value := _guess(text)) is not None:
        guessed = repair("guess", 0, f"guessed, because: {refusal['message']}", "guessed")
        return ParsedOutput(True, value, _dump(value), [guessed], lossless=False)
    refusal["excerpt"] = text[max(0, refusal["position"] - 40) : refusal["position"] + 40]
    return ParsedOutput(False, None, text, [], lossless=False, failure=refusal)


def _guess(text: str) -> Any:
    """Guess an object or array with the package `json_repair`; `None` if it finds none."""
    if len(text) > 100_000:  # `json_repair` takes time quadratic in a string's length.
        return None
    import json_repair  # noqa: PLC0415 - only this level needs the import

    try:
        value: Any = json_repair.loads(text)
        json.dumps(value)
    except (RecursionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    return value if value and type(value) in {dict, list} else None
