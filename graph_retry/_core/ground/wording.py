"""Words for messages: articles, plurals, suggestions for misspelt names, and names of types."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

from langgraph.errors import GraphBubbleUp

from graph_retry.lossless._ground import escaped, lazy

SENTENCE_END = lazy("[.!?]\\s+|\n|[\u3002\uff01\uff1f]")
_OBJECT, _LIST, _DATE = "an object", "a list", "a date (YYYY-MM-DD)"
_EXPECTED = {
    "bool": "true or false",
    "arguments": "the arguments of a function",
    "bytes": "binary data",
    "callable": "a function",
    "complex": "a complex number, such as 1+2j",
    "complex_str": "a complex number, such as 1+2j",
    "date": _DATE,
    "date_from_datetime": _DATE,
    "datetime": "a date and time (YYYY-MM-DDThh:mm:ss)",
    "datetime_from_date": "a date and time (YYYY-MM-DDThh:mm:ss)",
    "decimal": "a decimal number",
    "float": "a number",
    "fraction": "a fraction, such as 1/3",
    "int": "a whole number",
    "json": "JSON",
    "string": "a string",
    "string_sub": "a string",
    "time": "a time (hh:mm:ss)",
    "time_delta": "a duration, such as PT1H30M",
    "url": "a URL",
    "uuid": "a UUID",
    **dict.fromkeys(("model", "model_attributes", "dataclass", "dataclass_exact"), _OBJECT),
    **dict.fromkeys(("dict", "frozen_dict", "ordered_dict", "counter", "mapping"), _OBJECT),
    **dict.fromkeys(("list", "tuple", "named_tuple", "set", "frozen_set", "deque"), _LIST),
    "iterable": _LIST,
}
"""The words for an expected type, by pydantic's error code without `_type` or `_parsing`."""

_EXPECTED_BY_CODE = {
    "date_from_datetime_inexact": _DATE,
    "finite_number": "a finite number",
    "int_from_float": _EXPECTED["int"],
    "int_parsing_size": "a whole number of fewer digits",
    "none_required": "null",
}

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def with_article(noun: str) -> str:
    """Return a noun with `a` or `an` before it, chosen by its first letter.

    Example:
        >>> with_article("transient failure"), with_article("invalid answer")
        ('a transient failure', 'an invalid answer')
    """
    return f"{_article(noun)} {noun}"


def quoted_with_article(name: str) -> str:
    """Return the name of a class in backticks, with `a` or `an` before it.

    Example:
        >>> quoted_with_article("int"), quoted_with_article("dict"), quoted_with_article("UUID")
        ('an `int`', 'a `dict`', 'a `UUID`')
    """
    return f"{_article(name)} `{escaped(name)}`"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, in singular or plural.

    Example:
        >>> counted(1, "attempt"), counted(2, "attempt"), counted(0, "retry", "retries")
        ('1 attempt', '2 attempts', '0 retries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def since(moment: str) -> float:
    """Return the seconds since a time in ISO 8601; negative for a future time.

    Example:
        >>> since("2020-01-01T00:00:00+00:00") > 0
        True
    """
    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()


def in_words(seconds: float) -> str:
    """Write a number of seconds as a whole number of the largest unit that fits.

    Example:
        >>> in_words(7_300), in_words(1.2)
        ('2 hours', '1 second')
    """
    whole = max(0, int(seconds))
    unit, size = next((known for known in _UNITS if whole >= known[1]), _UNITS[-1])
    return counted(whole // size, unit)


def did_you_mean(name: str, known: tuple[str, ...]) -> str:
    """Return a sentence that suggests a known name for a misspelt one, or "" if none is close.

    Example:
        >>> did_you_mean("temprature", ("temperature", "model"))
        ' Did you mean `temperature`?'
    """
    close = closest(name, known)
    return f" {meaning(name, close)}" if close else ""


def meaning(name: str, close: str) -> str:
    """Return the sentence that suggests `close` for a misspelt name."""
    is_same = unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", close)
    code = close.encode("ascii", "backslashreplace").decode()
    how = f" It has the same letters, in another Unicode form ('{code}')." if is_same else ""
    return f"Did you mean `{close}`?{how}"


def closest(name: str, known: tuple[str, ...]) -> str | None:
    """Return the known name that is closest to a misspelt one; None if none is close.

    Example:
        >>> closest("modle", ("temperature", "model"))
        'model'
    """
    return next(iter(get_close_matches(name[:100], known, 1)), None)


_PATH = lazy(r"[./\[\]]+")


def near_miss(name: str, known: Collection[str], sent: Collection[str]) -> str | None:
    """Return the known name that an unknown name probably misspells; None if there is none.

    A known name that is itself in `sent` does not count. A known name of one or two letters is
    misspelt only by a different case, because many short names share half of their letters by
    chance. If the last part of a path is a known name, as in `params.model`, this name is returned.

    Example:
        >>> near_miss("modle", ["model"], sent=["modle"])
        'model'
        >>> near_miss("modle", ["model"], sent=["modle", "model"])
        >>> near_miss("K", ["k"], sent=["K"]), near_miss("ok", ["k"], sent=["ok"])
        ('k', None)
    """
    alike = [each for each in known if len(each) > 2 or each.lower() == name.lower()]
    near = None
    if name not in known:
        folded = (each for each in alike if each.lower() == name.lower())
        last = _PATH.split(name.rstrip("]"))[-1]  # As in `params.model`.
        near = next(folded, None) or (last if last in known else closest(name, tuple(alike)))
    return None if near in sent else near


def whole_sentences(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters, if possible after a sentence, line or word.

    The length of the whole text is added at the end.

    Example:
        >>> whole_sentences("Read it. Then write it down.", 12)
        'Read it. … (28 characters)'
    """
    if len(text) <= limit:
        return text
    head = text[:limit]
    ends = [found.end() for found in SENTENCE_END.finditer(text[: limit + 1])]
    end = ends[-1] if ends and ends[-1] > limit // 2 else head.rfind(" ")
    return f"{head[: end if end > limit // 2 else limit].rstrip()} … ({len(text):,} characters)"


def expected_by(code: str) -> str | None:
    """Return in plain words the type that an error code of pydantic expects; None if unknown.

    Example:
        >>> expected_by("date_from_datetime_parsing"), expected_by("too_short")
        ('a date (YYYY-MM-DD)', None)
    """
    kind, _, reason = code.rpartition("_")
    if reason in ("type", "parsing"):
        return _EXPECTED.get(kind, kind.replace("_", " "))
    return _EXPECTED_BY_CODE.get(code)


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in ("a", "e", "i", "o") else "a"


@contextmanager
def passed_as(option: str) -> Generator[None, None, None]:
    """Add a note to an exception of the `with` block: a function passed as `option` raised it.

    Example:
        >>> try:
        ...     with passed_as("price"):
        ...         1 / 0
        ... except ZeroDivisionError as error:
        ...     error.__notes__
        ['A function that was passed as `price` raised this exception.']
    """
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:
        error.add_note(f"A function that was passed as `{option}` raised this exception.")
        raise


def kind_and_size(value: Any) -> str:
    """Describe a value by its length or type, without showing the value itself."""
    if isinstance(value, str):
        return f"a text of {counted(len(value), 'character')}"
    return quoted_with_article(type(value).__name__)


def one_of(words: list[str]) -> str:
    """Join words by commas and `or`. A repeated word is left out."""
    *first, last = dict.fromkeys(words)
    comma = "," if any(" or " in each or ", " in each for each in words) else ""
    return f"{', '.join(first)}{comma} or {last}" if first else last
