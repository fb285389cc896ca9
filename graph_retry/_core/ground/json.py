"""Small functions for JSON values: type checks, exact reading and comparison, files, hashes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, Self

from typing_extensions import TypeIs

from graph_retry.lossless._ground import error_text

ABSENT: Any = object()
"""A marker for a missing value, because `None` may be a value."""


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Return whether a value is a JSON object.

    Example:
        >>> is_object({}), is_object([])
        (True, False)
    """
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Return whether a value is a JSON array.

    Example:
        >>> is_array([1]), is_array((1,))
        (True, False)
    """
    return isinstance(value, list)


def is_number(value: object) -> TypeIs[int | float]:
    """Return whether a value is a JSON number. `True` and `False` are not.

    Example:
        >>> is_number(1.5), is_number(True)
        (True, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: object) -> TypeIs[int]:
    """Return whether a value is an integer. `True` and `False` are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value: str) -> bool:
    """Return whether UTF-8 can encode a text. It cannot encode a lone surrogate."""
    return value.isascii() or value.encode(errors="ignore") == value.encode(errors="replace")


_HASHED = json.JSONEncoder(sort_keys=True, default=str)


class NotJsonError(ValueError):
    """A text is not JSON that graph state can hold. The message tells why."""


def read_json(text: str) -> Any:
    """Parse JSON strictly: finite numbers, unique keys, and only text that UTF-8 can encode.

    Raises:
        NotJsonError: If `text` is not such JSON.

    Example:
        >>> read_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
        ...
        graph_retry._core.ground.json.NotJsonError: the key "a" is given twice
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_finite,
        )
        json.dumps(value, ensure_ascii=False).encode()  # A lone surrogate raises here.
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None
    except ValueError as error:
        raise NotJsonError(error_text(error)) from None
    return value


class Digits(float):
    """A JSON number that a float cannot hold exactly. It is the nearest float.

    `spelled` has all digits of the number. Graph state holds only plain floats.
    """

    spelled: str

    def __new__(cls, spelled: str) -> Self:
        made = super().__new__(cls, spelled)
        made.spelled = spelled
        return made


def read_digits(text: str) -> Any:
    """Parse JSON. A number that a float cannot hold exactly becomes `Digits`.

    Example:
        >>> read_digits("[0.1, 0.1000000000000000055]")[1].spelled
        '0.1000000000000000055'
    """
    return json.loads(text, parse_float=lambda one: (Digits if loses_digits(one) else float)(one))


def loses_digits(spelled: str) -> bool:
    """Return whether a float would lose digits of a JSON number."""
    return Decimal(spelled) != Decimal(repr(float(spelled)))


def as_text(value: Any, indent: int | None = None) -> str:
    """Return a text unchanged, and any other value as JSON.

    Example:
        >>> as_text("a"), as_text({"a": 1})
        ('a', '{"a": 1}')
    """
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


def spelled_json(value: Any) -> str:
    """Write a value as JSON, in which `Digits` keep all of their digits.

    Example:
        >>> spelled_json({"a": read_digits("0.1000000000000000055")})
        '{"a": 0.1000000000000000055}'
    """
    if isinstance(value, Digits):
        return value.spelled
    if is_object(value):
        named = (f"{spelled_json(key)}: {spelled_json(item)}" for key, item in value.items())
        return f"{{{', '.join(named)}}}"
    if is_array(value):
        return f"[{', '.join(map(spelled_json, value))}]"
    return json.dumps(value, ensure_ascii=False)


def as_floats(value: Any) -> Any:
    """Return a JSON value with plain floats in place of `Digits`."""
    return _with_leaves(value, lambda leaf: float(leaf) if isinstance(leaf, Digits) else leaf)


def _finite(text: str) -> float:
    value = float(text)
    # A float cannot hold a number that is too large, and makes 0 of one that is too small.
    # `Decimal` refuses an exponent of twenty digits, so only the digits before it are checked.
    if not math.isfinite(value) or (not value and text.lower().partition("e")[0].strip("-0.")):
        is_number = text[-1:].isdecimal()
        why = "is out of the range of floats: give it as a text" if is_number else "is not a number"
        raise NotJsonError(f"{text[:40]} {why}")
    return int(text) if text.removeprefix("-").isdecimal() else value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise NotJsonError(f"the key {json.dumps(key[:60])} is given twice")
        fields[key] = value
    return fields


def json_lines(path: str | Path, of: str) -> Iterator[tuple[str, Any]]:
    """Yield (place, value) for each line of a JSON Lines file, such as ("line 2 of data.jsonl", 1).

    Raises:
        ValueError: If a line is not JSON, or the file is not text. The message contains `of`, a
            word for what the file should hold, such as "rows".

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "rows.jsonl")
        >>> _ = path.write_text('{"a": 1}')
        >>> [(place[:6], value) for place, value in json_lines(path, "rows")]
        [('line 1', {'a': 1})]
    """
    try:
        # The encoding is `utf-8-sig`, because some editors begin a file with a byte order mark.
        with Path(path).open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                place = f"line {number} of {path}"
                if line.strip():
                    try:
                        yield place, json.loads(line)
                    except ValueError as error:
                        told = f"{place} is not JSON ({error_text(error)}): pass a file of {of}."
                        raise ValueError(told) from None
    except UnicodeDecodeError:
        told = f"{path} is not text, and perhaps a database: pass a file of {of}."
        raise ValueError(told) from None


@contextmanager
def replacing(path: str | Path) -> Generator[IO[str], None, None]:
    """Open a text file for writing. It replaces the file at `path` only if the block ends normally.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "rows.jsonl")
        >>> with replacing(path) as file:
        ...     _ = file.write("[1]")
        >>> path.read_text()
        '[1]'
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # A pipe or device, such as `/dev/stdout`.
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    path = path.resolve()
    # The name is random, so that nobody can put a link to another file there beforehand.
    unfinished = path.with_name(f"{path.name}.{token_hex(8)}")
    try:
        with unfinished.open("x", encoding="utf-8", newline="\n") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with `change` applied to all texts in it. Keys stay unchanged.

    Example:
        >>> with_texts({"a": ["x", 1]}, str.upper)
        {'a': ['X', 1]}
    """
    return _with_leaves(value, lambda leaf: change(leaf) if isinstance(leaf, str) else leaf)


def _with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a JSON value with `change` applied to all values except objects and lists."""
    if is_object(value):
        return {key: _with_leaves(item, change) for key, item in value.items()}
    if is_array(value):
        return [_with_leaves(item, change) for item in value]
    return change(value)


def pointer(parts: Iterable[Any]) -> str:
    """Join path parts into a JSON Pointer (RFC 6901).

    Example:
        >>> pointer(["rows", 0, "a/b"])
        '/rows/0/a~1b'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def pointer_parts(path: str) -> list[str]:
    """Return the parts of a JSON Pointer as texts: keys, and indices of lists.

    Example:
        >>> pointer_parts("/rows/0/a~1b")
        ['rows', '0', 'a/b']
    """
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def address_key(thread_id: str | None, review_id: str) -> str:
    """Return a hash of a review id with its thread id, because copied threads share review ids."""
    return hashlib.sha256(f"{thread_id}\0{review_id}".encode()).hexdigest()[:24]


def digest(*parts: Any) -> str:
    """Return a short stable hash of JSON values, for keys and ids.

    Example:
        >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
        True
    """
    text = _HASHED.encode(parts)
    return hashlib.blake2s(text.encode(), digest_size=12).hexdigest()


def drawn(*values: Any) -> float:
    """Return a number from 0 to 1 that looks random, but is always the same for equal JSON values.

    Example:
        >>> drawn("thread", 1) == drawn("thread", 1), 0 <= drawn("thread", 1) < 1
        (True, True)
    """
    return int(digest(*values), 16) / 16**24


def known_sum(counts: Iterable[Any]) -> Any:
    """Return the sum of the numbers that are not None; None if there is no such number.

    Example:
        >>> known_sum([1, None, 2]), known_sum([None])
        (3, None)
    """
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
