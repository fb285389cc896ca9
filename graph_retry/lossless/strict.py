"""Read strict JSON; refuse repeated keys and floats out of range, in which `json` loses data."""

import json
import math
import re
from typing import Any

from graph_retry.lossless._ground import identical, lazy

MAX_DEPTH = 200
_MAP, _CONTAINERS = (dict,), (dict, list)
_NOT_ZERO = lazy(r"[^eE]*[1-9]")
_TEX = {  # What follows the letter of an escape in the commands of TeX, if it is no English word.
    "f": "rac|orall|lat|box", "r": "ho|ight|angle|floor|ceil|m",
    "n": "abla|eq|otin|exists|earrow", "t": "heta|imes|au|ext|extbf|extit|extrm|frac|riangle|anh",
}  # fmt: skip
LITERAL = r"b(?![\"']|\Z)|" + "|".join(f"{c}(?:{w})(?![A-Za-z])" for c, w in _TEX.items())
DRIVE = r"[A-Za-z]:(?:\\t[^\\\s\"']+|(?:\\[bfnrtu][^\\\s\"']*){2,})"
LAST_B = r"(?<=[^\"'\\])\\b"
BACKSLASH = r"(?<!\\)(?:\\\\)*\\"
_ESCAPES = lazy(rf"\\(?:(?P<odd>{LITERAL}|[fr](?=[A-Za-z])|(?<=[^\"'\\]\\)b)|.)", re.DOTALL)
_PATH = lazy(rf"[\"']{DRIVE}(?=[\"'])")


def has_odd_escape(text: str, start: int, end: int) -> bool:
    """Return whether an escape of JSON is rather two characters, as in a pattern or a path.

    No model writes a backspace, a form feed or a lone carriage return.
    """
    if text.find("\\", start, end) < 0:
        return False
    is_odd = any(one["odd"] for one in _ESCAPES.finditer(text, start, end))
    return is_odd or (text.find(":\\", start, end) > 0 and bool(_PATH.search(text, start, end)))


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object as a dict.

    Raises:
        ValueError: If two values for one key disagree.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        for key, value in pairs:
            if not identical(result[key], value):
                raise ValueError(f"Two values for the key `{key[:40]}`")
    return result


def finite(token: str) -> float:
    """Return the float for the text `token` of a number.

    Raises:
        ValueError: If the float would be infinite, or would be zero in place of a tiny number.
    """
    value = float(token)
    # This code runs for every float of a text, so the common case is tested first.
    if -math.inf < value < math.inf and (value or not _NOT_ZERO.match(token)):
        return value
    raise ValueError("A number is out of the range of floats")


# `int("NaN")` raises, so that `NaN` is left to the tolerant reader, which reports it.
DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_constant=int, parse_float=finite)


def strict_part(text: str, start: int, end: int) -> tuple[Any, int]:
    """Read the strict JSON value between `start` and `end`; return the value and its end.

    Raises:
        ValueError: If there is no strict JSON value.
    """
    value, stop = DECODER.raw_decode(text, start)
    if stop > end:
        raise ValueError("The value ends too late.")
    # The standard library's decoder has no limit of depth since Python 3.13.
    is_long = stop - start > 2 * MAX_DEPTH
    if is_long and text.count("[", start, stop) + text.count("{", start, stop) > MAX_DEPTH:
        _check_depth(value)
    return value, stop


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for each in level
            for item in (each.values() if type(each) in _MAP else each)
            if type(item) in _CONTAINERS
        ]
        if not level:
            return
    raise ValueError("Nested too deeply.")


def strict_value(text: str, *, is_plain: bool = False) -> Any:
    """Read a text that consists of one strict JSON document and white space.

    Raises:
        ValueError: If the text is not such a document, or has an odd escape and must be `is_plain`.
    """
    if is_plain and has_odd_escape(text, 0, len(text)):
        raise ValueError("A backslash may not be an escape")
    start = len(text) - len(text.lstrip(" \t\r\n"))
    value, end = strict_part(text, start, len(text))
    if end < len(text) and text[end:].strip(" \t\r\n"):
        raise json.JSONDecodeError("Extra data", text, end)
    return value
