"""Read posted forms within limits. This file has all limits of browser input.

A body is read only if it has the content type of our forms. It is parsed as a whole, outside the
event loop. JSON in a field is measured before it is parsed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request

Posted = list[tuple[str, str]]


class NotAllowedError(Exception):
    """A request is refused. The message tells the user what to do."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Bound(NamedTuple):
    """A limit, and the sentence that refuses a larger number."""

    most: int
    why: str

    def check(self, number: int) -> None:
        """Refuse a number above the limit.

        Raises:
            NotAllowedError: If `number` is above the limit. The message names the limit.
        """
        if number > self.most:
            raise NotAllowedError(413, self.why.format(f"{self.most:,}"))


BODY = Bound(8_000_000, "A form may have at most {} bytes: send less.")
SECONDS = Bound(120, "A form must arrive within {} seconds: send it again.")
ARRIVING = Bound(
    40_000_000, "Your forms in progress may have at most {} bytes: send this one again later."
)
"""The limit for the forms of one user, in all tabs, that arrive or wait to be applied."""
UNDER_WAY = Bound(
    1_000, "At most {} of your answers may wait to be applied: send this one again later."
)
FIELDS = Bound(5_000, "A form may have at most {} fields: edit the value as JSON, or from Python.")
NAME = Bound(4_000, "The name of a field may have at most {} bytes: edit it from Python.")
VALUES = Bound(50_000, "A form may have at most {} JSON values: answer this review from Python.")
DEPTH = Bound(100, "A value may be nested at most {} levels deep: answer this review from Python.")
REVIEWS = Bound(100, "A form may answer at most {} reviews: answer them in several parts.")
TICKS = Bound(100, "A form may answer at most {} reviews at once: answer them in several parts.")
COOKIE = Bound(4_000, "A cookie may have at most {} characters: delete the cookies of this page.")

_JSON_KINDS = frozenset({"json", "choice", "number"})
"""The kinds of fields that are parsed as JSON."""

_TEXTS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = re.compile(r"[^\[\]{}]+")
_MARKS = "[]{},"
_NAME = re.compile(rb'\r\nContent-Disposition: form-data; name="([^"\r\n]*)"(;?)', re.IGNORECASE)
_BOUNDARY = re.compile(
    r'multipart/form-data;\s*boundary="?([\w\'()+,./:=?-]{1,70})"?', re.IGNORECASE
)

_NOT_OURS = "This is not a form of this page: open the review again."


async def read_posted(
    request: Request,
    most: int,
    in_thread: Callable[..., Awaitable[Any]],
    arrived: Callable[[int], None],
) -> Posted:
    """Read a posted form of at most `most` bytes, without files.

    `in_thread` runs a function in an OS thread. `arrived` gets the number of bytes of each piece,
    and may refuse it.

    Raises:
        NotAllowedError: If the form is not a form of this page, or exceeds a limit.
    """
    found = _BOUNDARY.fullmatch(request.headers.get("content-type", "").strip())
    if found is None:
        raise NotAllowedError(415, f"{_NOT_OURS} Only `multipart/form-data` is read.")
    body = BODY._replace(most=most)
    told = request.headers.get("content-length", "0")
    body.check(int(told) if told.isdecimal() and len(told) < 20 else most + 1)
    # The header may be missing or wrong, so the received bytes are counted as well.
    read = bytearray()
    try:
        async with asyncio.timeout(SECONDS.most):
            async for chunk in request.stream():
                read += chunk
                arrived(len(chunk))
                body.check(len(read))
    except TimeoutError:
        raise NotAllowedError(408, SECONDS.why.format(SECONDS.most)) from None
    except ClientDisconnect:
        raise NotAllowedError(400, "The form was cut off: send it again.") from None
    posted: Posted = await in_thread(parsed, bytes(read), found[1].encode())
    return posted


def parsed(body: bytes, boundary: bytes) -> Posted:
    r"""Parse a browser's form (RFC 7578), without files.

    Raises:
        NotAllowedError: If the data is not such a form, or exceeds a limit.

    Example:
        >>> start = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
        >>> parsed(start + b"1\r\n--x--\r\n", b"x")
        [('a', '1')]
    """
    before, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, FIELDS.most + 2)
    FIELDS.check(len(parts) - 1)
    if before or not parts or parts.pop().strip() != b"--":
        raise NotAllowedError(400, _NOT_OURS)
    posted = [_field(part) for part in parts]
    check_fields(posted)
    return posted


def _field(part: bytes) -> tuple[str, str]:
    header, found, text = part.partition(b"\r\n\r\n")
    NAME.check(len(header))
    named = _NAME.match(header)
    if not found or named is None or named[2]:
        raise NotAllowedError(400, _NOT_OURS)
    try:
        return named[1].decode(), text.decode()
    except UnicodeDecodeError:
        raise NotAllowedError(400, _NOT_OURS) from None


def check_fields(posted: Sequence[tuple[str, str]]) -> None:
    """Check the number and the depth of the values in all fields of a form.

    Raises:
        NotAllowedError: If there are too many, or if one is nested too deep.
    """
    FIELDS.check(len(posted))
    values = len(posted)
    for name, text in posted:
        NAME.check(len(name))
        kind = name.partition(":")[0].rpartition(".")[2]
        place = text if kind == "do" else name
        NAME.check(len(place))
        DEPTH.check(depth := place.count("/"))
        try:
            unquote(place, errors="surrogatepass")
        except UnicodeDecodeError:
            raise NotAllowedError(400, _NOT_OURS) from None
        if kind in _JSON_KINDS:
            values += check_json(text, depth)
            VALUES.check(values)


def check_json(text: str, depth: int = 0) -> int:
    """Return an upper bound of the number of values in a JSON text, without parsing it.

    Raises:
        NotAllowedError: If there are too many, or if one is nested too deep.

    Example:
        >>> check_json('{"a": [1, 2]}')
        6
    """
    count = sum(map(text.count, _MARKS))
    if count > VALUES.most or count > DEPTH.most - depth:
        text = _without_texts(text)
        count = sum(map(text.count, _MARKS))
        VALUES.check(count)
        for bracket in _NO_BRACKETS.sub("", text):
            depth += 1 if bracket in "[{" else -1
            DEPTH.check(depth)
    return count + 1


def _without_texts(text: str) -> str:
    parts, at = list[str](), 0
    for number, found in enumerate(_TEXTS.finditer(text)):
        VALUES.check(number // 2)  # Each value has at most one key, and is at most one text.
        parts.append(text[at : found.start()])
        at = found.end()
    return "".join([*parts, text[at:]])


def text_of(form: Sequence[tuple[str, str]], name: str) -> str:
    """Return the last value of the field `name` in a posted form, or ""."""
    return next((text for key, text in reversed(form) if key == name), "")
