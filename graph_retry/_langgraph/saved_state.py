"""Read from a call's saved state which call it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from langgraph.graph import START

from graph_retry._attempts import params_at, readable, records_in
from graph_retry._langgraph.identity import identity_of
from graph_retry._params.codec import Encoded
from graph_retry._state import LOOP, loop_of


class Saved(NamedTuple):
    """A saved call: its identity and the params it was first made with."""

    identity: str
    params: dict[str, Any]


def saved_call(values: Mapping[str, Any], params_key: str) -> Saved | None:
    """Return the identity of the call with this state, or None if it is not a call's state."""
    values = values.get(START) or values  # only the input, if its first step was cut off
    loop, attempts = loop_of(values), readable(records_in(values))
    first = params_at(attempts, 1)
    params: Any = loop["given"] or (first and first.view) or values.get(params_key)
    if LOOP not in values and params is None:
        return None
    types = loop["types"] if first is None else first.types
    return Saved(loop["identity"] or identity_of(Encoded(params, types)), params)
