"""Store a call's result in graph state as plain JSON, and rebuild it."""

from __future__ import annotations

import sys
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from graph_retry._issues import attempt, format_issues, json_problem
from graph_retry._params.patch import Encoded
from graph_retry._params.tagged_json import TYPES, Writer, differences, restore
from graph_retry.records import Issue


def store(value: Any) -> Encoded | None:
    """Return `{"value": JSON}` with the value's Python types; None if it has no JSON form.

    A LangChain message is not converted, because LangGraph's serializer can store it.
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
    """Return why a checkpointer cannot save a value unchanged; None if it can."""
    problem = json_problem(value)
    # LangGraph's serializer would save `?` in place of such a character, and raise nothing.
    if problem and problem["code"] == "string_unicode":
        return problem["message"]
    _, problems = attempt(JsonPlusSerializer().dumps_typed, value)
    return problems[0]["message"].removeprefix("TypeError: ") if problems else None


def restore_value(value: Any, types: dict[str, str]) -> Any:
    """Rebuild a value that `store` wrote.

    Raises:
        ValueError: The value was edited in state, or the module of its class is not imported.
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
    """Return the type that a tag names: one of `TYPES`, or a class as `module:Class`."""
    module, _, path = tag.partition(":")
    # `getattr` would call a module's `__getattr__`, and that may import code that state names.
    cls: Any = sys.modules.get(module)
    for name in path.split("."):
        cls = getattr(cls, "__dict__", {}).get(name)
    if isinstance(cls, type):
        known = cast("type[Any]", cls)
        return known if issubclass(known, BaseModel | Enum) or is_dataclass(known) else None
    return TYPES.get(tag)
