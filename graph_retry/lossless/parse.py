"""The entry point `read`: it returns the JSON value in a model's text, or refuses the text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

from graph_retry.lossless._ground import RepairLevel, as_repr, lazy, text_of
from graph_retry.lossless.results import (
    NOTHING_KNOWN,
    Document,
    ParsedOutput,
    Refusal,
    Unreadable,
    Wanted,
    repair,
)
from graph_retry.lossless.strict import strict_value
from graph_retry.lossless.weighted.lexis import EDGES

_AROUND = {"surroundings", "code_fence", "white_space", "repeated", "chosen"}
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_LOOKS = 200_000
"""Maximum number of reads by `json_repair` in a text, enough for 50 kB of usual broken JSON."""
_FENCE_LINE = lazy(r"(`{3,}|~{3,})[ \t]*[\w+#.\-]*\s")


def read(
    text: str,
    level: RepairLevel = "standard",
    *,
    complete: bool | None = None,
    wants_list: bool | None = None,
    fits: Callable[[Any], bool] | None = None,
) -> ParsedOutput:
    """Read the JSON value in a model's text, losslessly or not at all.

    Strict JSON is read as Python's `json` reads it, with these exceptions:

    - The text is refused if a key has two different values, a number is out of the range of floats,
      or the nesting is too deep.
    - The other exceptions apply only to the levels `standard` and `aggressive`, as repairs:
      - `NaN` and `Infinity` are read.
      - An escape that probably means a backslash and a letter, as in a regular expression, is read
        as these two characters, or the text is refused.
      - If the whole text is one JSON string that contains JSON, the object or array in it is read.

    If the text has no object or array, the answer may be one JSON number, string or literal, alone
    in a code fence, or with tags, emphasis or a label around it, as in `Answer: 42</s>`. Python's
    `True`, `False` and `None` are read only inside an object or array. JSON inside a program in a
    code fence, such as `x = {"a": 1}`, counts only if the text has no other object or array.

    A broken text may have several readings. Each deviation from strict JSON adds points to the cost
    of a reading: three points more mean ten times less likely. The cheapest reading wins if every
    reading with a different value costs over six points more. If no reading wins, `fits` may choose
    one, or the text is refused.

    Args:
        text: The model's text.
        level: `none` reads only strict JSON. `minimal` also removes white space, invisible
            characters, and one code fence around the whole text. `standard` reads every text that
            has one certain reading. `aggressive` may also guess with the package `json-repair`, and
            then sets `lossless` to false.
        complete: True if the model finished its answer, False if it was cut off, None if unknown.
        wants_list: True if a list is wanted, False if a single value is wanted, None if unknown.
            Different calls in tags such as `<tool_call>` make a list. With False, they are refused.
        fits: A function `value -> bool`. If the text has several different answers, and this
            function accepts exactly one of them, the accepted answer is the value.

    Raises:
        TypeError: If `text` is not a string, or another argument has a wrong type.
        ValueError: If `level` is not one of the four levels.

    Example:
        >>> read("Sure: {'total': 3,}").value
        {'total': 3}
        >>> refused = read('{"items": [1, 2, ...]}').failure
        >>> refused and refused["kind"]
        'elided'
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"`text`: give a string, not {type(text).__name__}.")
    if level not in get_args(RepairLevel):
        raise ValueError(
            f"`level`: give one of {', '.join(get_args(RepairLevel))}; not {as_repr(level)}."
        )
    for name, given in (("complete", complete), ("wants_list", wants_list)):
        if not (given is None or isinstance(given, bool)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"`{name}`: give True, False or None, not {type(given).__name__}.")
    if not (fits is None or callable(fits)):
        raise TypeError(f"`fits`: give a function of a value, not {type(fits).__name__}.")
    return read_output(text, level, Wanted(complete, wants_list, fits))


def read_output(
    text: str, level: RepairLevel = "standard", wanted: Wanted = NOTHING_KNOWN
) -> ParsedOutput:
    """Do what `read` does, with all that the caller knows in one object."""
    is_tolerant = level in {"standard", "aggressive"}
    try:
        value = strict_value(text, is_plain=is_tolerant)
    except (ValueError, RecursionError):
        pass
    else:
        if type(value) is str:
            return _in_string(value, level, wanted) or ParsedOutput(True, value, text)
        if wanted.complete is not False or type(value) not in {int, float}:
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


def document_in(text: str, wanted: Wanted) -> Document:
    """Read the one document in a text that is not strict JSON as a whole."""
    from graph_retry.lossless.answer import answer  # noqa: PLC0415 - strict JSON needs none

    return answer(text, wanted)


def _read(text: str, level: RepairLevel, wanted: Wanted) -> Document:
    """Read a text that is not strict JSON as a whole, or whose last number may be cut off."""
    low, high = _bounds(text) if level != "none" else (0, len(text))
    is_tolerant = level in {"standard", "aggressive"}
    inside = text[low:high]
    try:
        value = strict_value(inside, is_plain=is_tolerant)
    except (ValueError, RecursionError) as error:
        if is_tolerant:
            return document_in(text, wanted)
        position, why = 0, text_of(error)
        if isinstance(error, json.JSONDecodeError):
            position, why = low + error.pos, error.msg
        raise Unreadable("syntax", position, f"This is not strict JSON: {why:.40}.") from None
    if wanted.complete is False and high == len(text) and type(value) in {int, float}:
        raise Unreadable("truncated", high, "The number may continue.")
    kind = "code_fence" if _FENCE_LINE.match(text[:low].lstrip(EDGES)) else "white_space"
    around = [repair(kind, 0, "left out around the answer")]
    inner = _in_string(value, level, wanted) if type(value) is str else None
    if inner is None:
        return Document(low, high, value, around)
    return Document(low, high, inner.value, [*around, *inner.repairs])


def _bounds(text: str) -> tuple[int, int]:
    """Return the start and end of a text's contents, inside white space and one code fence."""
    trimmed = text.rstrip(EDGES)
    low = len(trimmed) - len(trimmed.lstrip(EDGES))
    if fence := _FENCE_LINE.match(trimmed, low):
        return fence.end(), len(trimmed.removesuffix(fence[1]))
    return low, len(trimmed)


def _in_string(value: str, level: RepairLevel, wanted: Wanted) -> ParsedOutput | None:
    """Read the JSON document inside a JSON string; None if the string contains none."""
    if level not in {"standard", "aggressive"} or value.lstrip()[:1] not in {"{", "[", "`", '"'}:
        return None
    if value.lstrip()[0] == '"':
        try:
            strict_value(value)
        except ValueError:
            return None
    inner = read_output(value, wanted=wanted)
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
    """Return a guessed value if `level` allows one and a guess succeeds, otherwise the refusal."""
    may_guess = level == "aggressive" and refusal["kind"] != "no_json"
    if may_guess and (value := _guess(text)) is not None:
        guessed = repair("guess", 0, f"guessed, because: {refusal['message']}", "guessed")
        return ParsedOutput(True, value, _dump(value), [guessed], lossless=False)
    refusal["excerpt"] = text[max(0, refusal["position"] - 40) : refusal["position"] + 40]
    return ParsedOutput(False, None, text, [], lossless=False, failure=refusal)


class _Counted(str):
    """A text that counts how often `json_repair` reads it, and raises after `_LOOKS` times.

    Without this limit, `json_repair` takes quadratic time for many quotes or open brackets.
    """

    left: list[int]

    def like(self, text: str) -> _Counted:
        """Return another text that shares the count of this one."""
        made = _Counted(text)
        made.left = self.left
        return made

    def __getitem__(self, at: Any) -> str:
        part = super().__getitem__(at)
        self.left[0] -= 1 + len(part) // 1_000
        if self.left[0] < 0:
            raise ValueError("too much work")
        return self.like(part) if type(at) is slice else part

    def __add__(self, other: str) -> str:  # As `json_repair` inserts a bracket.
        return self.like(super().__add__(other))


def _guess(text: str) -> Any:
    """Guess the object or array in a text with the package `json_repair`, or return None."""
    import json_repair  # noqa: PLC0415 - only this level needs the import

    counted = _Counted(text)
    counted.left = [_LOOKS]
    try:
        value: Any = json_repair.loads(counted)
        value = json.loads(json.dumps(value))  # This makes its texts plain `str` again.
    except (RecursionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    return value if value and type(value) in {dict, list} else None
