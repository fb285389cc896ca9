"""Issue records: making them, bounding them, printing them."""

import json
import reprlib
from collections.abc import Iterable
from typing import Any

from graph_retry.records import Issue

MAX_ISSUES = 100
SHOWN_ISSUES = 20
MESSAGE_CHARS = 500
VALUE_CHARS = 200
REFUSED = "the validator refused the value"


def issue(
    path: Iterable[Any] | str,
    message: str,
    code: str,
    expected: str | None = None,
    received: str | None = None,
) -> Issue:
    """Make one issue with every text bounded; `path` is a JSON Pointer or its parts."""
    return {
        "path": cut(path if isinstance(path, str) else pointer(path), MESSAGE_CHARS),
        "message": cut(message, MESSAGE_CHARS),
        "code": code,
        "expected": expected if expected is None else cut(expected, VALUE_CHARS),
        "received": received if received is None else cut(received, VALUE_CHARS),
    }


def pointer(parts: Iterable[Any]) -> str:
    """Spell path parts as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def cut(text: str, limit: int) -> str:
    """Bound `text` to `limit` characters, with lone surrogates spelled out."""
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.encode("utf-8", "backslashreplace").decode()[:limit]


def literal(value: Any, limit: int = VALUE_CHARS) -> str:
    """Spell `value` as JSON, at most `limit` characters, without spelling all of a large one."""
    if isinstance(value, str):
        value = value[:limit]
    text = ""
    try:
        for piece in json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value):
            text += piece
            if len(text) > limit:
                break
    except (TypeError, ValueError, RecursionError):
        text = reprlib.repr(value)
    return cut(text, limit)


def describe(value: Any) -> str:
    """Spell `value` and its Python type, as in `"30" (str)`, at most 200 characters."""
    if value is None:
        return "null"
    kind = f" ({type(value).__name__})"
    return literal(value, VALUE_CHARS - len(kind)) + kind


def bounded(issues: list[Issue]) -> list[Issue]:
    """Keep the first 100 issues; one more then says that there are others."""
    if len(issues) <= MAX_ISSUES:
        return issues
    more = issue("", f"there are more issues than these {MAX_ISSUES}", "more_issues")
    return [*issues[:MAX_ISSUES], more]


def format_issues(issues: list[Issue]) -> str:
    """Number the issues for a person or a model to read, one line each, the first 20 of them.

    Example:
        >>> from graph_retry.validate import build_validator
        >>> print(format_issues(build_validator(dict[str, int]).check({"a": 1, "b": "x"}).issues))
        1. /b: Input should be a valid integer, unable to parse string as an integer \
(expected int, received "x" (str))
        >>> format_issues([])
        'no issues'
    """
    if not issues:
        return "no issues"
    lines = [f"{number}. {_line(each)}" for number, each in enumerate(issues[:SHOWN_ISSUES], 1)]
    if len(issues) > SHOWN_ISSUES:
        lines.append(f"… and {len(issues) - SHOWN_ISSUES} more")
    return "\n".join(lines)


def _line(each: Issue) -> str:
    facts = ", ".join(f"{key} {text}" for key in ("expected", "received") if (text := each[key]))
    line = f"{each['path'] or '(whole value)'}: {each['message']}{f' ({facts})' if facts else ''}"
    return " ".join(line.split())
