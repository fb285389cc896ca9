"""What a call is known by; and how a saved call tells it.

LangGraph saves a graph that was cut off before its first step with its input alone, under the
channel of `START`; found by ending processes there.

A call is known by the task of the node that makes it, by its name, by its `key` or else its first
params as encoded, and by a number among equal calls. All of these are in its namespace. So a saved
call is found by one exact lookup, in whatever order calls start, and a call with other params is
another call: likeness decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from langgraph.graph import START

from graph_retry._attempts import params_at, readable, records_in
from graph_retry._json import digest
from graph_retry._params.codec import Encoded
from graph_retry._state import LOOP, loop_of


def identity_of(params: Encoded, key: str | None = None) -> str:
    """Return the identity of a call within its task and name: a digest of its key or params."""
    return digest(*params) if key is None else digest(key)


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """List the top-level fields two params differ in.

    Example:
        >>> changed_fields({"city": "Rome", "at": 1}, {"city": "Rome", "at": 2})
        ['at']
    """
    names = dict.fromkeys([*before, *after])
    return [name for name in names if before.get(name, ...) != after.get(name, ...)]


class Saved(NamedTuple):
    """A saved call: its identity and the params it was first made with."""

    identity: str
    params: dict[str, Any]


def saved_call(values: Mapping[str, Any], params_key: str) -> Saved | None:
    """Return what the call with this state is known by, or None if it is not a call's state."""
    values = values.get(START) or values  # if the first step was cut off, only the input is saved
    loop, attempts = loop_of(values), readable(records_in(values))
    first = params_at(attempts, 1)
    params: Any = loop["given"] or (first and first.view) or values.get(params_key)
    if LOOP not in values and params is None:
        return None
    types = loop["types"] if first is None else first.types
    return Saved(loop["identity"] or identity_of(Encoded(params, types)), params)
