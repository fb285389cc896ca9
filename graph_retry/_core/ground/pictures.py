"""Replace pictures and files in base64 by short notes in texts, and put the pictures back.

A note is a text such as `[image/png, 262 characters, c2cdad8e]`. The last part is a hash, by which
the picture is found again even if a person has moved the note.
"""

from __future__ import annotations

import re
from typing import Any

from graph_retry._core.ground.json import digest, with_texts
from graph_retry.lossless._ground import lazy

_KINDS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp or audio/wav",
    "JVBERi0": "application/pdf",
    "SUQz": "audio/mpeg",
    "T2dnUw": "audio/ogg",
    "UEsDB": "application/zip",
}
"""Media types by the first characters of a file in base64."""

_BEGIN = "|".join(map(re.escape, _KINDS))
_ENCODED = lazy(
    r"data:(?P<kind>[\w.+-]+/[\w.+-]+)[\w;=.+-]*?;base64,[A-Za-z0-9+/_-]{150,}={0,2}"
    rf"|(?<![A-Za-z0-9+/])(?P<begin>{_BEGIN})[A-Za-z0-9+/]{{150,}}={{0,2}}"
)
_NOTE = lazy(r"\[[\w.+/ -]+, [\d,]+ characters, [0-9a-f]{8}\]")


class UnknownPictureError(ValueError):
    """A text contains a note, but the field that was shown has no such picture."""


def noted(value: Any) -> Any:
    """Return a JSON value with a note in place of each picture and file in its texts.

    Example:
        >>> noted({"url": "data:image/png;base64," + "iVBORw0KGgoA" * 20})
        {'url': '[image/png, 262 characters, c2cdad8e]'}
    """
    return with_texts(value, lambda text: _ENCODED.sub(_note, text))


def unnoted(value: Any, shown: Any) -> Any:
    """Replace each note in `value` by its picture. The pictures are in `shown`.

    A text that looks like a note stays if `shown` contains the same text.

    Raises:
        UnknownPictureError: If a note's picture is not in `shown`.

    Example:
        >>> shown = ["data:image/png;base64," + "iVBORw0KGgoA" * 20]
        >>> unnoted(["Look:", *noted(shown)], shown) == ["Look:", *shown]
        True
    """
    known: dict[str, str] = {}

    def learn(text: str) -> str:
        known.update({found.group(): found.group() for found in _NOTE.finditer(text)})
        known.update({_note(found): found.group() for found in _ENCODED.finditer(text)})
        return text

    def put_back(found: re.Match[str]) -> str:
        if found.group() not in known:
            raise UnknownPictureError(f"{found.group()} is not shown in this field")
        return known[found.group()]

    with_texts(shown, learn)
    return with_texts(value, lambda text: _NOTE.sub(put_back, text))


def _note(found: re.Match[str]) -> str:
    kind = found["kind"] or _KINDS[found["begin"]]
    return f"[{kind}, {len(found.group()):,} characters, {digest(found.group())[:8]}]"
