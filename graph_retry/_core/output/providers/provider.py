"""The type `Provider`, which each provider's file fills, and functions that read an answer.

An answer is an object of a provider's client, or the same answer as JSON. Both have their parts at
the same places. An answer is recognized by these places, so the client need not be installed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

from graph_retry._core.ground.json import ABSENT, is_array, is_object
from graph_retry.lossless._ground import lazy
from graph_retry.records import FailureKind

Finish = FailureKind | Literal["stopped"]
"""The meaning of a finish reason, independent of the provider's word for it."""

Cause = Literal["quota", "overflow", "filtered", "denied", "busy", "rejected"]
"""The meaning of an error code, independent of the provider's word for it."""

Said = Literal["overflow", "too_large", "filtered", "no_credit"]
"""The meaning of an error's text. `too_large`: this one request exceeds the limit of a minute."""

MeaningT = TypeVar("MeaningT", bound=str)
Paths = tuple[str, ...]
"""Paths to one part of an answer (see `found`). The first path that has a value counts."""


class Reply(NamedTuple):
    """One kind of answer, whole or streamed: how to recognize it, and where its parts are.

    The values at some paths show the kind of an answer. `as_object` and `as_json` map each of these
    paths to the wanted value, to its type, or to `...` for any value. The paths of `name`,
    `arguments` and `id` begin at a tool call.
    """

    as_object: Mapping[str, Any] | None = None
    """The values by which a client's object is recognized."""
    as_json: Mapping[str, Any] | None = None
    """The values by which a dict is recognized, mostly a role, which a user's dict lacks."""
    text: Paths = ()
    calls: Paths = ()
    name: Paths = ("name",)
    arguments: Paths = ("arguments",)
    id: Paths = ("id",)
    reasoning: Paths = ()
    finish_reason: Paths = ()
    refusal: Paths = ()
    blocked: Paths = ()
    """The reason why the provider did not accept the prompt."""
    parsed: Paths = ()
    tokens: tuple[Paths, Paths, Paths] = ((), (), ())
    """The numbers of input tokens, of output tokens, and of both."""
    thoughts: Paths = ()
    """The number of reasoning tokens, if the output tokens do not include them."""
    leaves_out_zero: bool = False
    """Whether the provider leaves out a number of tokens that is 0."""
    is_streamed: bool = False
    """Whether pieces of a stream also have this form, and repeat the usage and finish reason."""


class Provider(NamedTuple):
    """The facts about one provider; every field is optional."""

    replies: tuple[Reply, ...] = ()
    """The kinds of whole answers."""
    pieces: tuple[Reply, ...] = ()
    """The kinds of streamed pieces that differ from whole answers."""
    finish_words: Mapping[str, Finish] = MappingProxyType({})
    """The provider's finish reasons in lower case, with their meaning."""
    error_codes: Mapping[str, Cause] = MappingProxyType({})
    """The provider's error codes, in lower case and with only letters and digits."""
    error_texts: Mapping[str, Said] = MappingProxyType({})
    """Regular expressions for the texts of errors whose code does not tell the cause.

    The text of an error counts only if the status or the code says that the request was refused.
    """


def meaning(of: MeaningT, *words: str) -> dict[str, MeaningT]:
    return dict.fromkeys(words, of)


_PART = lazy(r"(\*|\w+)([:?!]?)(\w*)")


@cache
def _parts(path: str) -> list[tuple[str, str, str]]:
    """Split a path into its parts: a name, a test, and the word of the test."""
    return _PART.findall(path)


def found(value: Any, path: str) -> list[Any]:
    """List the values at a path in JSON or in a client's objects.

    A path consists of names and indices with dots between them. `*` means each element of a list.
    `*:text` means each element whose `type` is `text`. `*?thought` means each element with a true
    `thought`, and `*!thought` each element without. `finish_reason` also finds `finishReason`.

    Example:
        >>> found({"parts": [{"type": "text", "text": "Hi"}]}, "parts.*:text.text")
        ['Hi']
    """
    if isinstance(value, str):
        return []  # A text has no parts. Its methods, such as `index`, are none.
    values = [value]
    for name, test, word in _parts(path):
        values = [inner for one in values for inner in _inside(one, name)]
        if test == ":":
            values = [one for one in values if first(one, ("type",)) == word]
        elif test:
            values = [one for one in values if bool(first(one, (word,))) is (test == "?")]
    return values


def _inside(value: Any, name: str) -> list[Any]:
    if is_array(value):
        return value if name == "*" else value[int(name) :][:1] if name.isdecimal() else []
    if is_object(value):
        camel = re.sub("_(.)", lambda match: match[1].upper(), name)
        return [value[key] for key in (name, camel) if key in value][:1]
    inner = getattr(value, name, ABSENT)
    return [] if inner is ABSENT else [inner]


def all_of(value: Any, paths: Paths) -> list[Any]:
    """List the values at the first path that has any value; None does not count."""
    listed = ([one for one in found(value, path) if one is not None] for path in paths)
    return next(filter(None, listed), list[Any]())


def first(value: Any, paths: Paths) -> Any:
    """Return the first value at the first path that has any value, or None."""
    return next(iter(all_of(value, paths)), None)


def fits(value: Any, wanted: Mapping[str, Any] | None) -> bool:
    """Return whether an answer has each wanted value at its path; False if none is wanted."""
    return bool(wanted) and all(
        any(
            like is ... or (isinstance(one, like) if isinstance(like, type) else one == like)
            for one in found(value, path)
        )
        for path, like in (wanted or {}).items()
    )
