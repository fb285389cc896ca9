"""Read what an `llm_call` returned: text, a LangChain message, a `Completion`, or any object."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from graph_retry._issues import attempt, cut
from graph_retry._json import is_object
from graph_retry._output.validator import json_problem

_MAX_USAGE = 10_000
_MAX_WORDS = 4_000


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

    What a provider adds is kept within bounds, and left out where state could not hold it. A value
    that cannot be dumped stays what it is, for the caller to refuse.

    A message with exactly one tool call and no text is read as that call's arguments; one with a
    `parsed` value (provider-native structured output) as that value.
    """
    if isinstance(result, str):
        return Reading(text=result, value=None)
    if isinstance(result, Completion):
        text: Any = result.text
        is_text = isinstance(text, str)
        return Reading(
            text=text if is_text else None,
            value=None if is_text else text,
            usage=_usage(result.usage),
            finish_reason=_words(result.finish_reason),
        )
    if isinstance(result, BaseMessage):
        return _read_message(result)
    return Reading(text=None, value=_dumped(result))


def _dumped(value: Any) -> Any:
    """Return a model or a dataclass as JSON, if it has such a form."""
    is_dataclass = dataclasses.is_dataclass(value) and not isinstance(value, type)
    if isinstance(value, BaseModel):
        dumped, failed = attempt(lambda: value.model_dump(mode="json", by_alias=True))
    else:
        dumped, failed = attempt(to_jsonable_python, value) if is_dataclass else (value, [])
    return value if failed else dumped


def _usage(given: Any) -> dict[str, Any] | None:
    """Return token counts as state can hold them, or None."""
    if not is_object(given) or json_problem(given) or len(json.dumps(given)) > _MAX_USAGE:
        return None
    odd = {key for key, count in given.items() if key.endswith("_tokens") and not _is_count(count)}
    return {key: each for key, each in given.items() if key not in odd}


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _words(given: Any) -> str | None:
    return cut(given, _MAX_WORDS) if isinstance(given, str) else None


def _read_message(message: BaseMessage) -> Reading:
    text: str | None = str(message.text)
    extra = cast("dict[str, Any]", message.additional_kwargs)
    value: Any = extra.get("parsed")
    usage: dict[str, Any] | None = None
    if isinstance(message, AIMessage):
        usage = _usage(message.usage_metadata and dict(message.usage_metadata))
        if value is None and len(message.tool_calls) == 1 and not text:
            value = message.tool_calls[0]["args"]
    return Reading(
        text=None if value is not None else text,
        value=_dumped(value),
        usage=usage,
        finish_reason=_finish_reason(message.response_metadata),
        refusal=_words(extra.get("refusal")),
    )


def _finish_reason(metadata: Mapping[str, Any]) -> str | None:
    for key in ("finish_reason", "stop_reason", "done_reason"):
        if isinstance(metadata.get(key), str):
            return _words(metadata[key])
    return None
