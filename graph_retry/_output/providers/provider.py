"""The contents of a provider's file, and the parts that such files build messages from.

The objects are known by their shape, so that no client has to be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any, Literal, NamedTuple, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCallChunk,
)

from graph_retry._json import is_array, is_object
from graph_retry._patterns import lazy

Finish = Literal["stopped", "truncated", "overflowed", "refused", "broken_call"]
"""The meaning of a finish reason."""

_NONE: frozenset[str] = frozenset()


class ErrorWords(NamedTuple):
    """A provider's words for errors.

    Codes are in lower case, with only letters and digits. The texts are patterns for error
    messages, for errors without a code. They count only if the status or the code says that the
    request was refused.
    """

    quota: frozenset[str] = _NONE
    overflow: frozenset[str] = _NONE
    filtered: frozenset[str] = _NONE
    denied: frozenset[str] = _NONE
    busy: frozenset[str] = _NONE
    rejected: frozenset[str] = _NONE
    overflow_text: str | None = None
    too_large_text: str | None = None
    """For a 413 or 429: one request is above the limit of a whole minute."""
    filtered_text: str | None = None
    no_credit_text: str | None = None


class Provider(NamedTuple):
    """The facts about one provider; each part may be missing.

    `message` reads an object of its client, `chunk` a piece of its stream, together with what
    replaces earlier pieces' word of it (`usage`, `finish_reason`). `of_json` makes the object of a
    response that came as JSON. Each returns None for what is certainly not this provider's.
    """

    message: Callable[[Any], BaseMessage | None] = lambda _: None
    chunk: Callable[[Any], tuple[AIMessageChunk, dict[str, Any]] | None] = lambda _: None
    of_json: Callable[[dict[str, Any]], Any | None] = lambda _: None
    finish_words: Mapping[str, Finish] = MappingProxyType({})
    error_words: ErrorWords = ErrorWords()


def finishing(kind: Finish, *words: str) -> dict[str, Finish]:
    """Give words for the end of an answer one meaning."""
    return dict.fromkeys(words, kind)


def text_call(name: Any, arguments: Any, identifier: Any) -> InvalidToolCall:
    """Make a tool call of arguments that are text still: `completion` reads them as any other."""
    return InvalidToolCall(
        type="invalid_tool_call", name=name, args=arguments or "", id=identifier, error=None
    )


def made_message(
    text: Any,
    calls: Sequence[Mapping[str, Any]],
    *,
    usage: Mapping[str, int] | None,
    finish_reason: Any = None,
    refusal: Any = None,
    parsed: Any = None,
    reasoning: Any = None,
) -> AIMessage:
    """Make the message that a client's object stands for."""
    return AIMessage(
        text if isinstance(text, str) else "",
        tool_calls=cast("Any", [call for call in calls if is_object(call["args"])]),
        invalid_tool_calls=cast("Any", [call for call in calls if not is_object(call["args"])]),
        usage_metadata=cast("Any", usage),
        response_metadata={"finish_reason": finish_reason},
        additional_kwargs={"refusal": refusal, "parsed": parsed, "reasoning_content": reasoning},
    )


def made_chunk(
    text: str,
    *,
    calls: list[ToolCallChunk] | None = None,
    usage: Any = None,
    finish_reason: Any = None,
    refusal: Any = None,
    reasoning: Any = None,
) -> AIMessageChunk:
    """Make a message chunk of what one piece says."""
    return AIMessageChunk(
        content=text,
        tool_call_chunks=calls or [],
        usage_metadata=usage,
        response_metadata={"finish_reason": finish_reason} if finish_reason else {},
        additional_kwargs={
            **({"refusal": refusal} if refusal else {}),
            **({"reasoning_content": reasoning} if reasoning else {}),
        },
    )


def token_counts(given: Any, made: Any, total: Any = None) -> dict[str, int] | None:
    """Return token counts under LangChain's names; None if one is not a number."""
    if not (isinstance(given, int) and isinstance(made, int)):
        return None
    total = total if isinstance(total, int) else given + made
    return {"input_tokens": given, "output_tokens": made, "total_tokens": total}


def number_in(usage: Any, *names: str) -> int | None:
    """Return the first of these attributes that is a number."""
    found = (getattr(usage, name, None) for name in names)
    return next((number for number in found if isinstance(number, int)), None)


_DATA = frozenset({"args", "arguments", "input", "parsed", "output_parsed"})
"""Keys of what the model wrote, which stays as it is."""
_CAPITAL = lazy(r"(?<=[a-z])([A-Z])")


def at(value: Any, *path: str | int) -> Any:
    """Return the value at a path of JSON, or None."""
    for part in path:
        if is_object(value):
            value = value.get(str(part))
        elif is_array(value) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def as_object(value: Any) -> Any:
    """Make dicts objects with attributes, spelled as Python's clients spell them."""
    if is_array(value):
        return [as_object(item) for item in value]
    if not is_object(value):
        return value
    spelled = {_CAPITAL.sub(r"_\1", str(name)).lower(): item for name, item in value.items()}
    return SimpleNamespace(
        **{name: item if name in _DATA else as_object(item) for name, item in spelled.items()}
    )
