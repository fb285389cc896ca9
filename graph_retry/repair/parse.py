"""The entry points: read a model output at a level, or say why it was refused."""

import json
import re
from dataclasses import replace
from typing import Any

from graph_retry.records import Repair
from graph_retry.repair.decide import decide
from graph_retry.repair.extract import bounds
from graph_retry.repair.guess import guess
from graph_retry.repair.mend import Document
from graph_retry.repair.report import LEVELS, ParsedOutput, RepairLevel, Unreadable
from graph_retry.repair.strict import STRICT

_REFUSAL = re.compile(
    r"\bi(?:'|’)?(?: a)?m (?:very |so |really )?(?:sorry|unable|afraid|not able)|\bi apologi[sz]e\b"
    r"|\b(?:i|we) (?:can(?:no|'|’)t|can not|won(?:'|’)t|will not|am not able|must decline)\b"
    r"|\bsorry, (?:but )?i\b|\bas an ai\b|\bunable to (?:assist|help|comply|provide|fulfil)",
    re.IGNORECASE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_output(
    text: str, level: RepairLevel = "standard", *, complete: bool | None = None
) -> ParsedOutput:
    """Read the JSON value in a model's output, losslessly or not at all.

    Strict JSON comes back as the standard library reads it. `NaN` and keys that disagree are
    not strict: `standard` reads the first as a float and says so, and refuses the second.

    Args:
        text: What the model wrote.
        level: `none` reads the text as it is; `minimal` also takes it out of one fence that
            holds it all and strips white space and invisible characters; `standard` reads
            everything that has one reading; `aggressive` may guess, and flags what it guessed.
        complete: Whether the model finished (`True`), was cut off (`False`), or this is unknown.

    Raises:
        TypeError: `text` is no string.
        ValueError: `level` is none of the four.

    Example:
        >>> parse_output("Sure: {'total': 3,}").value
        {'total': 3}
        >>> refused = parse_output('{"items": [1, 2, ...]}').failure
        >>> refused and refused["kind"]
        'elided'
    """
    if level not in LEVELS:
        raise ValueError(f"`level` is {level!r:.40}: use one of {', '.join(LEVELS)}.")
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"`text` is a {type(text).__name__}: pass the model's output as a `str`.")
    try:
        value = STRICT.decode(text)
    except (ValueError, RecursionError):
        value = text
    else:
        if type(value) is str:
            return _parsed_string(text, value, level, complete)
        if complete is not False or type(value) not in {int, float}:
            return ParsedOutput(True, value, text)
    try:
        return _parsed(_read(text, level, complete))
    except Unreadable as error:
        refusal = error.refusal(text)
    except RecursionError:
        refusal = Unreadable("too_deep", 0, "Nested too deeply.").refusal(text)
    if level == "aggressive" and refusal["kind"] not in {"no_json", "refusal"}:
        guessed = guess(text)
        if guessed is not None:
            return ParsedOutput(True, guessed[0], _dump(guessed[0]), guessed[1], lossless=False)
    return ParsedOutput(False, None, text, [], lossless=False, failure=refusal)


def repair_output(text: str, level: RepairLevel = "standard") -> str:
    """Return JSON text for what `text` holds, or `text` unchanged where it cannot be read.

    Example:
        >>> repair_output("```json\\n{a: 1}\\n```")
        '{"a": 1}'
    """
    return parse_output(text, level).text


def _read(text: str, level: RepairLevel, complete: bool | None) -> Document:
    low, high = bounds(text) if level != "none" else (0, len(text))
    try:
        value = STRICT.decode(text[low:high])
        if complete is False and high == len(text) and type(value) in {int, float}:
            raise Unreadable("truncated", high, "The number may go on.")
        detail = "fence, white space or invisible characters around the value left out"
        repairs = [Repair(kind="wrapping", position=0, grade="format", detail=detail)]
        return Document(value, low, high, repairs, text[low:high])
    except json.JSONDecodeError as error:
        if level in {"none", "minimal"}:
            raise Unreadable("syntax", low + error.pos, f"No JSON: {error.msg}.") from None
    except ValueError as error:
        if level in {"none", "minimal"}:
            raise Unreadable("syntax", 0, f"No strict JSON: {error!s:.40}.") from None
    try:
        return decide(text, complete=complete)
    except Unreadable as error:
        if error.kind == "no_json" and (match := _REFUSAL.search(text)):
            raise Unreadable("refusal", match.start(), "The model declined to answer.") from None
        raise


def _parsed(document: Document) -> ParsedOutput:
    written = document.json or _dump(document.value)
    return ParsedOutput(True, document.value, written, document.repairs)


def _parsed_string(
    text: str, value: str, level: RepairLevel, complete: bool | None
) -> ParsedOutput:
    """Read a document that came as the contents of one JSON string; any other string is itself."""
    if level in {"standard", "aggressive"} and value.lstrip()[:1] in {"{", "[", "`"}:
        inner = parse_output(value, "standard", complete=complete)
        if isinstance(inner.value, (dict, list)):
            detail = "JSON inside a JSON string"
            repair = Repair(kind="json_in_string", position=0, grade="format", detail=detail)
            return replace(inner, repairs=[repair, *inner.repairs])
    return ParsedOutput(True, value, text)


def _dump(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if _SURROGATE.search(written) else written
