r"""Make an example text for a regular expression. An example is easier to read than a pattern."""

from __future__ import annotations

import re
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

from graph_retry.lossless._ground import lazy

_LONGEST = 60
_TOKEN = lazy(
    r"(?P<open>\((?:\?:|\?P?<\w+>|(?!\?)))|(?P<close>\))|(?P<or>\|)|(?P<edge>[\^$]|\\[AbzZ])"
    r"|(?P<set>\[(?P<not>\^?)(?P<members>\]?(?:\\.|[^\\\]])*)\])|(?P<char>\\.|[^\\])",
    re.DOTALL,
)
_REPEAT = lazy(r"(?:([*?])|(\+)|\{(\d+)(?:,\d*)?\})[?+]?")
_CHARACTERS = {
    ".": "abcdefghij",
    r"\w": "abcdefghij",
    r"\d": "1234567890",
    r"\s": " ",
    r"\W": "-",
    r"\D": "abc",
    r"\S": "abc",
    r"\n": "\n",
    r"\t": "\t",
}


@lru_cache(maxsize=256)
def example_of(pattern: str) -> str | None:
    r"""Return a short text that matches a pattern, or None if none was found.

    Example:
        >>> example_of(r"^(INV|CR)-[A-F]{2}\d{4}$"), example_of(r"(?=a)b")
        ('INV-AB1234', None)
    """
    try:
        text, end = _alternatives(pattern, 0)
        matches = SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python
        found = end == len(pattern) and text and matches(text)
    except (ValueError, RecursionError, SchemaError):
        return None
    return text if found and text.isprintable() and '"' not in text else None


def _alternatives(pattern: str, start: int) -> tuple[str, int]:
    """Return a text for the part of a pattern from `start` on, and the index of the part's end.

    The text is for the first alternative, as `a` in `a|b`. The part ends before `)`, or at the
    pattern's end.
    """
    parts, first = list[str](), None
    while start < len(pattern):
        token = _TOKEN.match(pattern, start)
        if token is None or token.lastgroup is None:
            raise ValueError(pattern)
        kind = token.lastgroup
        if kind == "close":
            break
        start, drawn = token.end(), ""
        if kind == "or":
            first, parts = "".join(parts) if first is None else first, []
            continue
        if kind == "open":
            inner, start = _alternatives(pattern, start)
            drawn, start = inner, start + 1
        elif kind == "set":
            drawn = _members(token["members"], is_negated=bool(token["not"]))
        elif kind == "char":
            drawn = _CHARACTERS.get(token[0]) or token[0][-1]
            if token[0][0] == "\\" and token[0][1].isalnum() and token[0] not in _CHARACTERS:
                raise ValueError(pattern)
        times, repeat = 1, _REPEAT.match(pattern, start)
        if repeat:
            start = repeat.end()
            times = 0 if repeat[1] else 3 if repeat[2] else int(repeat[3])
        if len("".join(parts)) + times * (len(drawn) if kind == "open" else 1) > _LONGEST:
            raise ValueError(pattern)
        # At each repetition, a set gives its next character, and a group gives the same text.
        parts += (
            [drawn if kind == "open" else drawn[n % len(drawn) :][:1] for n in range(times)]
            if drawn
            else []
        )
    return first if first is not None else "".join(parts), start


def _members(members: str, *, is_negated: bool) -> str:
    """Return up to ten characters of each range in a set such as `[A-F]`; one if negated."""
    known = list[str]()
    for low, high in re.findall(r"(\\.|.)(?:-(\\.|.))?", members, re.DOTALL):
        known += _CHARACTERS.get(low) or low[-1]
        if high:
            known += [
                chr(n) for n in range(ord(low[-1]) + 1, min(ord(high[-1]), ord(low[-1]) + 9) + 1)
            ]
    if is_negated:
        return next(each for each in "abc123-_ ." if each not in known)
    return "".join(dict.fromkeys(known))
