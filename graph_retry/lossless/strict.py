"""Read strict JSON. Refuse what `json` would lose: a key's second value, a float out of range."""

import json
import math
from typing import Any

from graph_retry.lossless._ground import identical, lazy

MAX_DEPTH = 200
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_MARKS = bytes({*range(256)} - {*b'{}[]:"'})
_NOT_ZERO = lazy(r"[^eE]*[1-9]")
_TEX = {  # The rest of TeX commands such as `\frac`, if it is no English word.
    "f": "rac|orall|lat|box", "r": "ho|ight|angle|floor|ceil|m",
    "n": "abla|eq|otin|exists|earrow", "t": "heta|imes|au|ext|extbf|extit|extrm|frac|riangle|anh",
}  # fmt: skip
LITERAL = r"b(?![\"']|\Z)|" + "|".join(f"{c}(?:{w})(?![A-Za-z])" for c, w in _TEX.items())
_HEX = "u[0-9A-Fa-f]{4}"
_REST = rf"(?:[^\\\s\"']|\\{_HEX})"
DRIVE = rf"[A-Za-z]:(?:\\t{_REST}+|(?:\\(?!{_HEX})[bfnrtu]{_REST}*){{2,}})"
# Patterns that begin with a backslash are searched fast. Lookbehinds check what is before it.
LAST_B = r"\\(?<=[^\"'\\]\\)b"
BACKSLASH = r"\\(?<!\\\\)(?:\\\\)*"
ODD_ESCAPE = rf"{BACKSLASH}(?:{LITERAL}|[fr](?=[A-Za-z]))|{LAST_B}"
_ODD = lazy(ODD_ESCAPE)
_PATH = lazy(rf"[\"']{DRIVE}(?=[\"'])")


def has_odd_escape(text: str, start: int, end: int) -> bool:
    r"""Return whether an escape probably means a backslash and a letter, as in a regex or a path.

    For example, `\b` is probably part of a regex. Models do not write a backspace, a form feed or a
    lone carriage return.
    """
    if text.find("\\", start, end) < 0:
        return False
    is_path = text.find(":\\", start, end) > 0 and _PATH.search(text, start, end)
    return bool(is_path or _ODD.search(text, start, end))


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object as a dict. Use it as `object_pairs_hook` of `json`.

    Raises:
        ValueError: If a key occurs twice with different values.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        for key, value in pairs:
            if not identical(result[key], value):
                raise ValueError(f"Two values for the key `{key[:40]}`")
    return result


def finite(token: str) -> float:
    """Return the float that a number's text `token` means. Use it as `parse_float` of `json`.

    Raises:
        ValueError: If the float would be infinite, or zero for a number that is not zero.
    """
    value = float(token)
    # This code runs for every float of a text, so the common case is tested first.
    if -math.inf < value < math.inf and (value or not _NOT_ZERO.match(token)):
        return value
    raise ValueError("A number is out of the range of floats")


# `int("NaN")` raises, so that `NaN` is left to the tolerant reader, which reports it.
_PAIRS = json.JSONDecoder(object_pairs_hook=unique, parse_constant=int, parse_float=finite)


def strict_part(text: str, start: int, end: int) -> tuple[Any, int]:
    """Read the strict JSON value between `start` and `end`; return the value and its own end.

    Raises:
        ValueError: If no strict JSON value begins at `start`, or if it is nested too deeply.
    """
    objects = list[dict[str, Any]]()

    def kept(one: dict[str, Any]) -> dict[str, Any]:
        objects.append(one)
        return one

    decoder = json.JSONDecoder(object_hook=kept, parse_constant=int, parse_float=finite)
    value, stop = decoder.raw_decode(text, start)
    if stop > end:
        raise ValueError("The value ends too late.")
    marks = _marks(text[start:stop])
    if marks.count(b":") > sum(map(len, objects)):  # A key is repeated.
        value, stop = _PAIRS.raw_decode(text, start)
    marks = marks.translate(None, b":")
    # The standard library's decoder has no limit of depth since Python 3.13.
    for _ in range(MAX_DEPTH + 1):
        marks = marks.replace(b"[]", b"")
        if not marks:
            return value, stop
    raise ValueError("Nested too deeply.")


def _marks(text: str) -> bytes:
    """Return the brackets and colons outside of strings. Curly brackets become square brackets."""
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    marks = text.encode("ascii", "ignore").translate(_BRACKETS, _NO_MARKS)
    outside = marks.replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2]) if b'"' in outside else outside


def strict_value(text: str, *, is_plain: bool = False) -> Any:
    """Read a text that is one strict JSON document, with nothing but white space around it.

    Raises:
        ValueError: If the text is not one strict JSON document. With `is_plain`, also if it has an
            escape that probably means two characters.
    """
    if is_plain and has_odd_escape(text, 0, len(text)):
        raise ValueError("A backslash may not be an escape")
    start = len(text) - len(text.lstrip(" \t\r\n"))
    value, end = strict_part(text, start, len(text))
    if end < len(text) and text[end:].strip(" \t\r\n"):
        raise json.JSONDecodeError("Extra data", text, end)
    return value
