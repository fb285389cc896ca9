"""Create issues, which are records of what is wrong with a value, and write values for messages.

An issue has the path of the wrong part as a JSON Pointer, a message and a code. All of its texts
have a limited length.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from graph_retry._core.ground.credentials import without_keys
from graph_retry._core.ground.json import (
    ABSENT,
    is_array,
    is_object,
    is_text,
    pointer,
    pointer_parts,
)
from graph_retry._core.ground.wording import counted, expected_by
from graph_retry.lossless._ground import as_repr, lazy, shortened, text_of
from graph_retry.records import Issue

SHOWN_ISSUES = 20
"""Maximum number of issues that a review shows."""
MAX_ISSUES = 100
MESSAGE_CHARS = 500
VALUE_CHARS = 200
MAX_DEPTH = 200  # Pydantic's JSON parser and checkpointers fail at a slightly greater depth.
_LENGTHS = ("string_too_long", "string_too_short")
REFUSED = "the validator refused the value"

Path = tuple[int | str, ...]


def issue(
    path: Iterable[Any] | str,
    message: str,
    code: str,
    expected: Any = None,
    received: Any = None,
    *,
    hopeless: bool = False,
) -> Issue:
    """Create an issue and limit the length of its texts. `path` is a JSON Pointer or its parts.

    Example:
        >>> issue(["rows", 0], "is too long", "row_length")["path"]
        '/rows/0'
    """
    made: Issue = {
        "path": cut(path if isinstance(path, str) else pointer(path), MESSAGE_CHARS),
        "message": cut(message, MESSAGE_CHARS),
        "code": cut(str(code), 80),
        "expected": None if expected is None else cut(str(expected), VALUE_CHARS),
        "received": None if received is None else cut(str(received), VALUE_CHARS),
    }
    return {**made, "hopeless": True} if hopeless else made


def is_hopeless(error: Any) -> bool:
    """Return whether an exception's attribute `hopeless` says that no new call can help."""
    return getattr(error, "hopeless", False) is True


def top_of(one: Issue) -> str:
    """Return the name of the top-level field that an issue is about; "" for the whole value.

    Example:
        >>> top_of({"path": "/rows/0/a~1b", "message": "", "code": ""})
        'rows'
    """
    return next(iter(pointer_parts(one["path"])), "")


def cut(text: str, limit: int) -> str:
    """Shorten a text to at most `limit` characters, and escape lone surrogates.

    Example:
        >>> cut("abcdef", 4)
        'abc…'
    """
    return shortened(text, limit).encode("utf-8", "backslashreplace").decode()[:limit]


def excerpt(text: str, limit: int) -> str:
    """Shorten a text to at most `limit` characters (60 or more) by removing its middle.

    Example:
        >>> excerpt("a" * 1000, 60)
        'aaaaaaaaaaaaaaa…[980 characters cut]…aaaaa'
    """
    if len(text) > limit:
        room = limit - 40
        head, tail = text[: room * 3 // 4], text[len(text) - room // 4 :]
        text = f"{head}…[{len(text) - len(head) - len(tail):,} characters cut]…{tail}"
    return cut(text, limit)


_TURNS = lazy(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
"""Characters to escape in messages: control characters beyond ASCII, marks of the writing
direction, line separators, lone surrogates, and characters that nobody sees.
"""


def literal(value: Any, limit: int = VALUE_CHARS) -> str:
    """Write a value as JSON, cut after `limit` characters. The rest is not even encoded.

    Characters that would break the line or reverse its direction are escaped.

    Example:
        >>> literal({"a": "x"}), literal("abcdef", 5)
        ('{"a": "x"}', '"abc…')
    """
    value = value[:limit] if isinstance(value, str) else value
    try:
        pieces = json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value)
        text = "".join(islice(pieces, limit + 1))[: limit + 1]
        return cut(_TURNS.sub(lambda found: ascii(found[0])[1:-1], text), limit)
    except Exception:  # noqa: BLE001  what a value says of itself may raise anything
        return as_repr(value, limit)


def describe(value: Any, *, with_length: bool = False) -> str:
    """Write a value with its Python type, as in `"30" (str)`, in at most 200 characters."""
    kind = "" if value is None else f" ({type(value).__name__})"
    if with_length and isinstance(value, str):
        kind = f" ({counted(len(value), 'character')})"
    return literal(value, VALUE_CHARS - len(kind)) + kind


def attempt(call: Callable[..., Any], *args: Any, root: Any = ABSENT) -> tuple[Any, list[Issue]]:
    """Call a user's function. Return (result, no issues), or (`ABSENT`, issues) if it raises.

    With `root`, the value that the function checks, the paths of the issues are exact.
    """
    try:
        return call(*args), []
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001  validators are users' code and may raise anything
        return ABSENT, wrap_error(error, root)


def wrap_error(error: Exception, root: Any = ABSENT) -> list[Issue]:
    """Convert an exception to issues. A `ValidationError` gives one issue for each of its errors.

    If `root` (the value that was checked) is given, the paths of the issues are exact.

    Example:
        >>> wrap_error(KeyError("age"))[0]["message"]
        "KeyError: 'age'"
    """
    if isinstance(error, ValidationError):
        return pydantic_issues(error, root)
    group = cast("Any", error)
    if isinstance(error, ExceptionGroup):
        return [problem for one in group.exceptions for problem in wrap_error(one, root)]
    # The import of `jsonschema` is slow. A module that was never imported cannot have raised this.
    jsonschema = sys.modules.get("jsonschema")
    if jsonschema and isinstance(error, jsonschema.ValidationError):
        return schema_issues(error)
    text, hopeless = without_keys(text_of(error)), is_hopeless(error)
    if isinstance(error, ValueError | AssertionError):
        return [issue("", text or REFUSED, "value_error", hopeless=hopeless)]
    what = f"{type(error).__name__}: {text}"
    return [issue("", what, "unexpected_error", hopeless=hopeless)]


def schema_issues(error: Any) -> list[Issue]:
    """Convert an error of `jsonschema` to an issue, or to one issue for each forbidden key.

    If the schema has alternatives (`anyOf`), the issue is about the closest alternative.
    """
    closest = sys.modules["jsonschema"].exceptions.best_match([error])
    path = [*closest.absolute_path]
    # An error has no keyword if the schema is `false`, or if custom code made the error.
    code = closest.validator if isinstance(closest.validator, str) else "schema"
    # The message quotes the whole value, so a short form replaces this value.
    text = closest.message.replace(repr(closest.instance), literal(closest.instance, 80), 1)
    text += "" if closest is error else f" (the closest way to satisfy `{error.validator}`)"
    if code == "required":
        names = closest.validator_value if is_array(closest.validator_value) else []
        path += [name for name in names if closest.message == f"{name!r} is a required property"]
        return [issue(path, text, code, "a value", _came(closest.instance))]
    if code == "schema":
        return [issue(path, text, code)]
    wanted = limit_in_words(code, closest.validator_value)
    wanted = wanted or f"{code} {literal(closest.validator_value)}"
    came = describe(closest.instance, with_length="Length" in code)
    if code == "additionalProperties" and "patternProperties" not in closest.schema:
        named = closest.schema.get("properties", {})
        forbidden = [key for key in closest.instance if key not in named]
        if closest.validator_value is False and forbidden:
            return [issue([*path, key], "this key is not allowed", code) for key in forbidden]
    return [issue(path, text, code, wanted, came)]


def size_in_words(word: str, limit: Any, noun: str) -> str:
    """Write a size limit such as `maxItems` in words.

    Example:
        >>> size_in_words("maxItems", 1, "item")
        'at most 1 item'
    """
    return f"{'at most' if word.startswith('max') else 'at least'} {counted(limit, noun)}"


def limit_in_words(word: str, limit: Any) -> str | None:
    r"""Write a JSON Schema keyword that limits texts in words; None for any other keyword.

    Example:
        >>> limit_in_words("maxLength", 30), limit_in_words("pattern", r"^S-\d{3}$")
        ('at most 30 characters', 'a text like "S-123"')
    """
    if word in ("maxLength", "max_length", "minLength", "min_length") and isinstance(limit, int):
        return size_in_words(word, limit, "character")
    if word != "pattern" or not isinstance(limit, str):
        return None
    from graph_retry._core.ground.pattern_examples import example_of  # noqa: PLC0415 - most need none

    example = example_of(limit)
    return None if example is None else f'a text like "{example}"'


def _came(instance: Any) -> str | None:
    """List the keys of an object that lacks a key, because one of them may be a misspelling."""
    if not is_object(instance):
        return None
    return f"the keys {listed(instance)}" if instance else "no keys"


def listed(names: Iterable[str]) -> str:
    """Join names in backticks by commas, but at most eight of them."""
    shown = [*islice(names, 9)]
    return ", ".join([*(f"`{cut(name, 40)}`" for name in shown[:8]), *(["…"] * (len(shown) > 8))])


def pydantic_issues(error: ValidationError, root: Any = ABSENT) -> list[Issue]:
    """Convert each error of a `ValidationError` to an issue.

    Pydantic's locations also contain union tags and names of validators. With the checked value as
    `root`, these are removed from the path.
    """
    issues: list[Issue] = []
    for problem in islice(error.errors(include_url=False), MAX_ISSUES + 1):
        path, code, context = problem["loc"], problem["type"], problem.get("ctx", {})
        missing = code.startswith("missing")
        if root is not ABSENT:
            end = len(path) - missing
            path = _real_path(path[:end], problem["input"], root) + path[end:]
        wanted = "a value" if missing else expected_by(code)
        wanted = context.get("expected") or context.get("expected_tags") or wanted
        if code.startswith("string"):
            told = (limit_in_words(word, limit) for word, limit in context.items())
            wanted = wanted or next(filter(None, told), None)
        came = problem["input"]
        received = _came(came) if missing else describe(came, with_length=code in _LENGTHS)
        hopeless = context.get("hopeless") is True or is_hopeless(context.get("error"))
        issues.append(issue(path, problem["msg"], code, wanted, received, hopeless=hopeless))
    return issues


def _real_path(loc: Path, goal: Any, root: Any) -> Path:
    """Return the parts of a pydantic location that exist in `root` and lead to the value `goal`."""
    reached: dict[Path, Any] = {(): root}
    for part in loc:
        for path, node in list(reached.items()):
            if (child := child_of(node, part)) is not ABSENT:
                reached[*path, part] = child
    exact = [path for path, node in reached.items() if node == goal]
    # A user's validator may report a path that is not in the data. Return the part that exists.
    return max(exact or reached, key=len)


def child_of(node: Any, part: Any) -> Any:
    """Return the item under a key of a dict or an index of a list; `ABSENT` if there is none."""
    if is_object(node):
        return node.get(part, ABSENT)
    return node[part] if is_array(node) and part in range(len(node)) else ABSENT


def as_json(value: Any) -> Any:
    """Return the JSON that a value's type defines for the value; without it, the value itself."""
    if json_problem(value) is None:
        return value
    written, failed = attempt(lambda: to_jsonable_python(value, by_alias=True, round_trip=True))
    return value if failed else written


def json_problem(value: Any, path: tuple[Any, ...] = ()) -> Issue | None:
    """Return an issue that tells why graph state cannot hold a value as JSON; None if it can.

    Only the first problem is returned. `path` is the path of the value. An instance of a subclass
    (of `str`, for example) is a problem, because a checkpointer would return the base class.
    """
    kind = cast("Any", type(value))
    if len(path) > MAX_DEPTH:
        return issue(path[:8], f"nested deeper than {MAX_DEPTH} levels", "too_deep")
    if kind is dict or kind is list:
        for key, child in value.items() if kind is dict else enumerate(value):
            if kind is dict and type(key) is not str:
                return issue(path, "a key is not text", "not_json", "text", describe(key))
            here = (*path, key)
            of_key = json_problem(key, here) if kind is dict else None
            if problem := of_key or json_problem(child, here):
                return problem
    elif kind is str and not is_text(value):
        return issue(path, "lone surrogates are not text", "string_unicode", "text")
    # LangGraph's PostgreSQL savers cannot save a NUL character in a state value that is a text.
    elif kind is str and not path and "\0" in value:
        return issue(path, "PostgreSQL cannot save a NUL character", "string_unicode", "text")
    elif kind is float and not math.isfinite(value):
        return issue(path, "JSON has no such number", "finite_number", "a number", describe(value))
    elif kind is int and not -(2**63) <= value < 2**64:
        return issue(path, "graph state holds integers of 64 bits", "int_range", "64 bits")
    elif kind not in (str, int, float, bool, type(None)):
        return issue(path, "this is not plain JSON", "not_json", "JSON", describe(value))
    return None
