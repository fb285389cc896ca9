"""Keep any value in graph state as plain JSON, and make it again."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from graph_retry._issues import attempt
from graph_retry._output.validator import json_problem
from graph_retry._params.codec import Encoded, ParamsCodec


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


def unsavable(value: Any) -> str | None:
    """Say why a checkpointer cannot save a value as it is, or return None if it can."""
    problem = json_problem(value)
    if problem and problem["code"] == "string_unicode":  # LangGraph's serializer would write `?`
        return problem["message"]
    _, problems = attempt(JsonPlusSerializer().dumps_typed, value)
    return problems[0]["message"].removeprefix("TypeError: ") if problems else None


def restore(value: Any, types: dict[str, str]) -> Any:
    """Make a stored value again."""
    if not types:
        return value
    box: dict[str, Any] = {"value": value}
    return ParamsCodec[Any].for_value(box).decode(box, types)["value"]
