"""Read what an `llm_call` returned: text, a LangChain message, a `Completion`, or any object."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel
from pydantic_core import to_jsonable_python


@dataclass(frozen=True)
class Completion:
    """A model's text together with what the provider said about it.

    `usage` is a plain dict of token counts (LangChain's `usage_metadata` keys where possible);
    `finish_reason` is the provider's word, such as `stop` or `length`.

    Example:
        >>> Completion('{"a": 1}', finish_reason="stop").text
        '{"a": 1}'
    """

    text: str
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None


@dataclass(frozen=True)
class Reading:
    """A call's result in the terms of the ledger.

    `text` is what repair works on; where it is None, `value` is already structured.
    """

    text: str | None
    value: Any
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None
    refusal: str | None = None


def read_result(result: Any) -> Reading:
    """Tell text from structured values, and pick up usage and the finish reason.

    A message with exactly one tool call and no text is read as that call's arguments; one with a
    `parsed` value (provider-native structured output) as that value.
    """
    if isinstance(result, str):
        return Reading(text=result, value=None)
    if isinstance(result, Completion):
        return Reading(
            text=result.text,
            value=None,
            usage=result.usage,
            finish_reason=result.finish_reason,
        )
    if isinstance(result, BaseMessage):
        return _read_message(result)
    if isinstance(result, BaseModel):
        return Reading(text=None, value=result.model_dump(mode="json", by_alias=True))
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return Reading(text=None, value=to_jsonable_python(result))
    return Reading(text=None, value=result)


def _read_message(message: BaseMessage) -> Reading:
    text: str | None = str(message.text)
    extra = cast("dict[str, Any]", message.additional_kwargs)
    value: Any = extra.get("parsed")
    usage: dict[str, Any] | None = None
    if isinstance(message, AIMessage):
        usage = dict(message.usage_metadata) if message.usage_metadata else None
        if value is None and len(message.tool_calls) == 1 and not text:
            value = message.tool_calls[0]["args"]
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", by_alias=True)
    return Reading(
        text=None if value is not None else text,
        value=value,
        usage=usage,
        finish_reason=_finish_reason(message.response_metadata),
        refusal=extra.get("refusal"),
    )


def _finish_reason(metadata: Mapping[str, Any]) -> str | None:
    for key in ("finish_reason", "stop_reason", "done_reason"):
        if isinstance(metadata.get(key), str):
            return str(metadata[key])
    return None
