"""Read a model's stream piece by piece, and always close the stream, even before its end."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from langgraph.errors import GraphBubbleUp

_LOG = logging.getLogger("graph_retry")


def joined(texts: Iterable[str]) -> str:
    """Join pieces of text. If two pieces hold the halves of one character, join the halves."""
    text = "".join(texts)
    if not re.search("[\ud800-\udbff][\udc00-\udfff]", text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def without_half(text: str) -> str:
    """Remove half a character (a high surrogate) at the end, whose other half may still come."""
    return text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text


class Receiver(Protocol):
    """An object that receives the pieces of a stream."""

    def take(self, piece: Any) -> bool:
        """Add the next piece; return whether the stream may stop."""
        ...

    def result(self) -> Any:
        """Return the pieces, joined."""
        ...


def drain(stream: Iterator[Any], receiver: Receiver) -> Any:
    """Pass a stream's pieces to `receiver`, until either of the two stops; return its result."""
    try:
        for piece in stream:
            if receiver.take(piece):
                break
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            with _errors_logged():
                close()
    return receiver.result()


async def adrain(stream: AsyncIterator[Any], receiver: Receiver) -> Any:
    """Pass an async stream's pieces to `receiver`, as `drain` does for a sync stream."""
    try:
        async for piece in stream:
            if receiver.take(piece):
                break
    finally:
        close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        with _errors_logged():
            closing = None if close is None else close()
            if inspect.isawaitable(closing):
                await closing
    return receiver.result()


@contextmanager
def _errors_logged() -> Generator[None]:
    """Log any error that occurs while a stream is closed, because the output has arrived."""
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the client of a provider raises
        _LOG.warning("a stream could not be closed: %s", type(error).__name__)
