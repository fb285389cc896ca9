"""Keep any value in graph state as plain JSON, and make it again."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage

from graph_retry.params.codec import Encoded, ParamsCodec


def store(value: Any) -> Encoded | None:
    """Return a value's JSON under the key `value`, with its types; None if it has no such form.

    LangChain messages stay what they are: state knows them.
    """
    if isinstance(value, BaseMessage):
        return Encoded({"value": value}, {})
    box = {"value": value}
    try:
        return ParamsCodec[Any].for_value(box).encode(box, owner="output")
    except (TypeError, ValueError):
        return None


def restore(value: Any, types: dict[str, str]) -> Any:
    """Make a stored value again."""
    if not types:
        return value
    box: dict[str, Any] = {"value": value}
    return ParamsCodec[Any].for_value(box).decode(box, types)["value"]
