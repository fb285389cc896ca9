"""Read the result of an `llm_call`: text, a LangChain message, a `Completion`, or any object."""

from __future__ import annotations

import dataclasses
import json
import logging
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from graph_retry._core.ground.issues import attempt, cut, excerpt, json_problem
from graph_retry._core.ground.json import is_array, is_number, is_object
from graph_retry._core.ground.logs import warn_once
from graph_retry._core.output.failures import is_complete
from graph_retry._core.output.providers.google import BLOCKED
from graph_retry._core.output.providers.langchain import finish_reason, reasoning_in, refusal_in
from graph_retry._core.output.providers.objects import blocked, message_of, token_name_of
from graph_retry._core.output.validator import Validator
from graph_retry.lossless._ground import as_repr
from graph_retry.lossless.results import Wanted

_LOG = logging.getLogger("graph_retry")

_MAX_USAGE = 10_000
_MAX_WORDS = 4_000
_MAX_REASONING = 20_000


@dataclass(frozen=True)
class Completion:
    """A model's text together with the provider's metadata.

    `usage` is a dict of token counts, under LangChain's names or the provider's names. The ledger
    adds LangChain's names. `finish_reason` is the provider's word, such as `stop` or `length`.

    Example:
        >>> Completion('{"a": 1}', finish_reason="stop").text
        '{"a": 1}'
    """

    text: str
    usage: dict[str, Any] | None = None
    finish_reason: str | None = None

    def __post_init__(self) -> None:
        """Log a warning if `usage` is no dict. The answer is paid for, so this is no error."""
        if self.usage is not None and not is_object(cast("Any", self.usage)):
            what = "the `usage` of a `Completion` is %s, and is dropped: give a dict of token "
            warn_once(_LOG, what + 'counts, such as {"total_tokens": 12}', as_repr(self.usage, 80))


class Reading(NamedTuple):
    """The result of a call, split into the fields that the ledger records."""

    text: str | None
    """The text to parse and repair. None means that `value` is already structured."""
    value: Any
    usage: dict[str, Any] | None = None
    """Token counts, as in `Completion`."""
    finish_reason: str | None = None
    refusal: str | None = None
    """The model's refusal, or the provider's reason for blocking the prompt."""
    reasoning: str | None = None
    """The model's reasoning before its answer, if the provider returns it."""

    @property
    def is_complete(self) -> bool | None:
        """Whether the model finished; False if it was cut off, None if this is unknown."""
        return is_complete(self.finish_reason)


def read_result(result: Any, validator: Validator | None = None) -> Reading:
    """Split the result of a call into text or value, usage and finish reason.

    An object of a provider's client is first converted to a LangChain message. A message may hold
    several answers. Its `parsed` value (native structured output) is taken first, then its tool
    calls, then its text. If the validator wants plain text, the text comes before the tool calls.

    Long texts in the metadata are cut. Usage that graph state cannot hold is dropped. A value
    without a JSON form is returned unchanged, and the caller refuses it.

    Example:
        >>> read_result(Completion("12", finish_reason="stop")).text
        '12'
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
    # `llm_call` may return any object, and its attributes may raise when they are read.
    message, failed = attempt(message_of, result)
    if message is not None and not failed:
        return _read_message(message, validator)
    return Reading(text=None, value=_dumped(result, validator))


def _dumped(value: Any, validator: Validator | None) -> Any:
    """Convert a pydantic model or a dataclass to JSON, and return any other value unchanged."""
    value = value if validator is None else validator.written(value)
    is_dataclass = dataclasses.is_dataclass(value) and not isinstance(value, type)
    if isinstance(value, BaseModel):
        dumped, failed = attempt(lambda: value.model_dump(mode="json", by_alias=True))
    else:
        dumped, failed = attempt(to_jsonable_python, value) if is_dataclass else (value, [])
    return value if failed else dumped


def _usage(given: Any) -> dict[str, Any] | None:
    """Add LangChain's names to the token counts; return None if graph state cannot hold them.

    Token counts that are negative or not numbers are left out.
    """
    if not is_object(given) or json_problem(given) or len(json.dumps(given)) > _MAX_USAGE:
        return None
    named = [(token_name_of(key), count) for key, count in given.items()]
    told: dict[str, Any] = {**{name: count for name, count in named if name}, **given}
    return {key: count for key, count in told.items() if _may_be_count(key, count)}


def _may_be_count(key: str, value: Any) -> bool:
    is_count = value is None or (is_number(value) and value >= 0)
    return is_count or not (key.endswith("_tokens") or token_name_of(key))


def _words(given: Any) -> str | None:
    return cut(given, _MAX_WORDS) if isinstance(given, str) else None


def _read_message(message: BaseMessage, validator: Validator | None) -> Reading:
    # Google's message about a broken call quotes the call.
    text: str | None = str(message.text) or message.response_metadata.get("finish_message") or ""
    extra = cast("dict[str, Any]", message.additional_kwargs)
    value: Any = extra.get("parsed")
    stopped = blocked(message.response_metadata, BLOCKED)
    refusal = extra.get("refusal") or stopped or refusal_in(message)
    usage: dict[str, Any] | None = None
    if isinstance(message, AIMessage):
        usage = _usage(message.usage_metadata and dict(message.usage_metadata))
        wants_text = validator is not None and validator.wants_text
        if value is None and validator is not None and validator.wants_message:
            value = dumped_message(message)
        if value is None and not (text and wants_text):
            text, value = _of_tool_calls(message, validator, text)
    return Reading(
        text=None if value is not None else text,
        value=_dumped(value, validator),
        usage=usage,
        finish_reason=_words(finish_reason(message.response_metadata)),
        refusal=_words(refusal),
        reasoning=excerpt(reasoning_in(message), _MAX_REASONING) or None,
    )


def _of_tool_calls(
    message: AIMessage, validator: Validator | None, text: str | None
) -> tuple[str | None, Any]:
    """Read the answer in a message's tool calls, as a text to parse or as a value.

    Several calls become a list. If one value is wanted, and exactly one call has the name of its
    type, only this call is read. If the calls' names are part of the answer, each call becomes
    `{"name": …, "arguments": …}`. Arguments that the client could not parse stay text.
    """
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
        # LangChain completes arguments that were cut off, and lists them as valid. The chunks still
        # have the arguments as they arrived.
        calls = [*message.tool_call_chunks]
    older = message.additional_kwargs.get("function_call")
    if not calls and is_object(older):
        calls = [{"name": older.get("name"), "args": older.get("arguments"), "id": None}]
    # LangChain lists valid and invalid calls separately. This restores the provider's order.
    order = [call.get("id") for call in _raw_calls(message)]
    calls.sort(key=lambda call: order.index(call["id"]) if call["id"] in order else len(order))
    wants_list = validator is not None and validator.kinds == frozenset({"array"})
    named = [call for call in calls if validator is not None and call["name"] == validator.name]
    if len(calls) > 1 and len(named) == 1 and not wants_list:
        calls = named
    if not calls:
        return text, None
    is_one = len(calls) == 1 and not wants_list
    complete = is_complete(finish_reason(message.response_metadata))
    is_named = _are_names_data(calls, validator)
    if all(is_object(call["args"]) for call in calls):
        values = [_named(call) if is_named else call["args"] for call in calls]
        return None, values[0] if is_one else values
    # A call of a tool without arguments has an empty text, which stands for `{}`. In an answer that
    # was cut off, an empty text may also be the beginning of arguments.
    nothing = "" if complete is False else "{}"
    spelled = [
        json.dumps(call["args"]) if is_object(call["args"]) else call["args"] or nothing
        for call in calls
    ]
    # If the answer was cut off, the last object and the list may be incomplete. They stay open.
    open_end = "" if complete is False else "}"
    if is_named:
        ends = ["}"] * (len(calls) - 1) + [open_end]
        spelled = [
            f'{{"name": {json.dumps(call["name"])}, "arguments": {arguments}{end}'
            for call, arguments, end in zip(calls, spelled, ends, strict=True)
        ]
    close = "" if complete is False else "]"
    return (spelled[0] if is_one else f"[{', '.join(spelled)}{close}"), None


def _are_names_data(calls: list[Any], validator: Validator | None) -> bool:
    """Return whether the names of the called tools are part of the answer."""
    if validator is None or not all(isinstance(call["name"], str) for call in calls):
        return False
    called = [call["name"] for call in calls]
    if Wanted(names=validator.call_names).are_chosen_by(called):
        return True
    # If calls name several functions, a type such as `list[dict]` has a place for the names.
    is_read = len({*called}) > 1 and all(is_object(call["args"]) for call in calls)
    return is_read and validator.has_place([_named(call) for call in calls])


def _named(call: Any) -> dict[str, Any]:
    return {"name": call["name"], "arguments": call["args"]}


def _raw_calls(message: AIMessage) -> list[dict[str, Any]]:
    """List the calls in the provider's order, if the message has the provider's data."""
    content: Any = message.content
    blocks = content if is_array(content) else []
    listed = message.additional_kwargs.get("tool_calls") or blocks
    return [item for item in listed if is_object(item)]


def dumped_message(message: AIMessage) -> dict[str, Any]:
    """Return the fields of a message that are not defaults, as JSON. A chunk becomes a message."""
    kept = {name: getattr(message, name) for name in AIMessage.model_fields}
    plain = AIMessage.model_construct(**kept)
    return plain.model_dump(mode="json", exclude_defaults=True, exclude={"type"})
