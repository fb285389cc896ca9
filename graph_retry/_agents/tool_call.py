"""An agent's tool call as a call that may fail: its options, and what its result becomes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal, cast

from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import TypeIs

from graph_retry._json import is_object
from graph_retry._review.decision import DECISION_TYPES
from graph_retry.options import RetryOptions

_OF_MODELS = ("feedback", "lessons", "repair", "strict", "locked", "name", "auto_retries")


def tool_options(options: RetryOptions) -> RetryOptions:
    """Return the options that hold for tool calls, too.

    Nobody is told anything in a tool's arguments, so a person cannot comment. That every valid
    answer of the model is reviewed does not mean every result of a tool.
    """
    kept: Any = {name: value for name, value in options.items() if name not in _OF_MODELS}
    allowed = options.get(
        "allowed_decisions", [kind for kind in DECISION_TYPES if kind != "accept"]
    )
    kept["allowed_decisions"] = [kind for kind in allowed if kind != "comment"] or ["reject"]
    if kept.get("review") == "always":
        kept["review"] = True
    return cast("RetryOptions", kept)


def result_of(request: ToolCallRequest, output: Any) -> ToolMessage | Command[Any]:
    """Return a tool's result, or what a person gave in its place, as the agent takes it."""
    if _is_result(output):
        return output
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return tool_message(request, text)


def _is_result(value: object) -> TypeIs[ToolMessage | Command[Any]]:
    return isinstance(value, ToolMessage | Command)


def tool_message(
    request: ToolCallRequest, text: str, status: Literal["success", "error"] = "success"
) -> ToolMessage:
    """Return what the model is told about a tool call."""
    call = request.tool_call
    return ToolMessage(text, tool_call_id=str(call["id"]), name=call["name"], status=status)


def with_update(
    result: ToolMessage | Command[Any], update: dict[str, Any]
) -> ToolMessage | Command[Any]:
    """Return a tool's result together with an update of the agent's state."""
    if not update:
        return result
    if isinstance(result, ToolMessage):
        return Command(update={"messages": [result], **update})
    known: Any = result.update
    return replace(result, update={**known, **update}) if is_object(known) else result
