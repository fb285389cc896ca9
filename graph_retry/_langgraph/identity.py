"""The identity of a call, and the first params of a saved one.

A call is known by the task that makes it, by its name, and by its identity: a digest of its `key`,
or else of its first params as encoded. Equal calls of one task are numbered. All of these are in
its namespace, so a saved call is found by one exact lookup, in whatever order calls start; a call
with other params is another call.

LangGraph saves a graph that was cut off before its first step with its input alone, under the
channel of `START`. Found by ending processes there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.graph import START

from graph_retry._attempts import params_at, readable, records_in
from graph_retry._json import digest
from graph_retry._params.codec import Encoded
from graph_retry._state import loop_of


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


def first_params(values: Mapping[str, Any], params_key: str) -> dict[str, Any] | None:
    """Return the params that a saved call was first made with; None if it is not a call's state."""
    values = values.get(START) or values
    first = params_at(readable(records_in(values)), 1)
    return loop_of(values)["given"] or (first and first.view) or values.get(params_key)
