"""The type `Provider`, which each provider's file fills, and functions that build messages.

Providers' objects are recognized by their attributes, so that no client has to be installed.
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
"""The meaning of a finish reason, independent of the provider's word for it."""

_NONE: frozenset[str] = frozenset()


class ErrorWords(NamedTuple):
    """A provider's error codes and error texts, by their meaning.

    The sets hold error codes, in lower case and with only letters and digits. The fields that end
    in `_text` are regular expressions for messages of errors that have no telling code. A text
    counts only if the status or the code says that the request was refused.
    """

    quota: frozenset[str] = _NONE
    overflow: frozenset[str] = _NONE
    filtered: frozenset[str] = _NONE
    denied: frozenset[str] = _NONE
    busy: frozenset[str] = _NONE
    rejected: frozenset[str] = _NONE
    overflow_text: str | None = None
    too_large_text: str | None = None
    """For status 413 or 429: this one request exceeds the limit of a whole minute."""
    filtered_text: str | None = None
    no_credit_text: str | None = None


class Provider(NamedTuple):
    """The facts about one provider; every field is optional.

    The three functions return None for an object that is not this provider's.
    """

    message: Callable[[Any], BaseMessage | None] = lambda _: None
    """Convert an object of the provider's client to a LangChain message."""
    chunk: Callable[[Any], tuple[AIMessageChunk, dict[str, Any]] | None] = lambda _: None
    """Convert a streamed piece to a chunk, and to metadata that replaces that of earlier pieces."""
    of_json: Callable[[dict[str, Any]], Any | None] = lambda _: None
    """Convert a response that came as JSON to an object that `message` can read."""
    finish_words: Mapping[str, Finish] = MappingProxyType({})
    """The provider's finish reasons in lower case, with their meaning."""
    usage_words: Mapping[str, str] = MappingProxyType({})
    """The provider's names of token counts in snake case, with LangChain's names for them."""
    error_words: ErrorWords = ErrorWords()


def finishing(kind: Finish, *words: str) -> dict[str, Finish]:
    """Map several finish reasons to one meaning."""
    return dict.fromkeys(words, kind)


def text_call(name: Any, arguments: Any, identifier: Any) -> InvalidToolCall:
    """Make a tool call whose arguments are still text; `completion` parses them later."""
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
    """Make a LangChain message from the parts of a client's object."""
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
    """Make a LangChain message chunk from the parts of one streamed piece."""
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
    """Return token counts under LangChain's names; None if a count is not a number."""
    if not (isinstance(given, int) and isinstance(made, int)):
        return None
    total = total if isinstance(total, int) else given + made
    return {"input_tokens": given, "output_tokens": made, "total_tokens": total}


def number_in(usage: Any, *names: str) -> int | None:
    """Return the first of the named attributes that is an integer, or None."""
    found = (getattr(usage, name, None) for name in names)
    return next((number for number in found if isinstance(number, int)), None)


_DATA = frozenset({"args", "arguments", "input", "parsed", "output_parsed"})
"""Keys whose values the model wrote. They stay dicts, because their keys are data."""
_CAPITAL = lazy(r"(?<=[a-z])([A-Z])")


def at(value: Any, *path: str | int) -> Any:
    """Return the value at a path in JSON, or None if there is none."""
    for part in path:
        if is_object(value):
            value = value.get(str(part))
        elif is_array(value) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def in_snake_case(name: Any) -> str:
    """Return the spelling of a JSON key in the providers' Python clients."""
    return _CAPITAL.sub(r"_\1", str(name)).lower()


def as_object(value: Any) -> Any:
    """Turn dicts into objects with attributes, whose names are in snake case as in the clients."""
    if is_array(value):
        return [as_object(item) for item in value]
    if not is_object(value):
        return value
    spelled = {in_snake_case(name): item for name, item in value.items()}
    return SimpleNamespace(
        **{name: item if name in _DATA else as_object(item) for name, item in spelled.items()}
    )
