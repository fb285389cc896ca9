"""Keep any value in graph state as plain JSON, and make it again."""

from __future__ import annotations

import sys
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from graph_retry._issues import attempt, format_issues, json_problem
from graph_retry._params.codec import Encoded
from graph_retry._params.tagged_json import TYPES, Writer, differences, restore
from graph_retry.records import Issue


def store(value: Any) -> Encoded | None:
    """Return a value's JSON under the key `value`, with its types; None if it has no such form.

    LangChain messages are left unchanged: state can hold them.
    """
    if isinstance(value, BaseMessage):
        return Encoded({"value": value}, {})
    box = {"value": value}
    try:
        view, types = Writer("output", typed=True).write(box)
        # Without a declared type for the output, the tags must name its classes.
        types = {**Writer("output", typed=True, complete=True).write(box)[1], **types}
        again = restore_value(view["value"], types)
        return None if differences(value, again) else Encoded(view, types)
    except (TypeError, ValueError):
        return None


def unsavable(value: Any) -> str | None:
    """Say why a checkpointer cannot save a value as it is, or return None if it can."""
    problem = json_problem(value)
    if problem and problem["code"] == "string_unicode":  # LangGraph's serializer would write `?`
        return problem["message"]
    _, problems = attempt(JsonPlusSerializer().dumps_typed, value)
    return problems[0]["message"].removeprefix("TypeError: ") if problems else None


def restore_value(value: Any, types: dict[str, str]) -> Any:
    """Make a stored value again.

    Raises:
        ValueError: It was edited in state, or its class is not among the imported modules.
    """
    if not types:
        return value
    problems: list[Issue] = []
    again = restore({"value": value}, types, problems, _type_named)["value"]
    if problems:
        raise ValueError(
            "`output` in graph state is no longer what the call returned; put back what was there, "
            f"or import the class in this process:\n{format_issues(problems)}"
        )
    return again


def _type_named(tag: str) -> type[Any] | None:
    """Find a type that JSON lacks; also a model, dataclass or enum of the modules imported."""
    module, _, path = tag.partition(":")
    # `__dict__`, not `getattr`: a module-level `__getattr__` may import.
    cls: Any = sys.modules.get(module)
    for name in path.split("."):
        cls = getattr(cls, "__dict__", {}).get(name)
    if isinstance(cls, type):
        known = cast("type[Any]", cls)
        return known if issubclass(known, BaseModel | Enum) or is_dataclass(known) else None
    return TYPES.get(tag)
