"""The identity of a call, and the first params of a saved one.

A call is identified by its task, its name and its identity. The identity is a digest of its `key`
or, without a key, of its encoded first params. Equal calls of one task are numbered. The call's
namespace holds all of these, so one exact lookup finds a saved call, in whatever order calls start.
A call with different params is a different call.

If a graph is interrupted before its first step, LangGraph has saved only its input, under the
channel `START`. (Observed by killing processes there.)
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import CodeType
from typing import Any

from langgraph.graph import START

from graph_retry._attempts import params_at, readable, records_in
from graph_retry._awaiting import unwrapped
from graph_retry._json import digest
from graph_retry._params.codec import Encoded
from graph_retry._state import loop_of


def identity_of(params: Encoded, key: str | None = None) -> str:
    """Return a call's identity: a digest of its key or, without a key, of its first params."""
    return digest(*params) if key is None else digest(key)


def body_of(function: Any) -> tuple[CodeType | None, int]:
    """Return the code of a function and the id of the object whose method it is.

    A lambda that is made again has the same code. The code of any other object is not known.

    Example:
        >>> body_of(lambda text: text.upper()) == body_of(lambda text: text.lower())
        False
    """
    function, owner = unwrapped(function), None
    if inspect.ismethod(function):
        function, owner = function.__func__, function.__self__
    return function.__code__ if inspect.isfunction(function) else None, id(owner)


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """List the top-level fields in which two params differ.

    Example:
        >>> changed_fields({"city": "Rome", "at": 1}, {"city": "Rome", "at": 2})
        ['at']
    """
    names = dict.fromkeys([*before, *after])
    return [name for name in names if before.get(name, ...) != after.get(name, ...)]


def first_params(values: Mapping[str, Any], params_key: str) -> dict[str, Any] | None:
    """Return the params that a saved call started with; None if `values` is no call's state."""
    values = values.get(START) or values
    first = params_at(readable(records_in(values)), 1)
    return loop_of(values)["given"] or (first and first.view) or values.get(params_key)
