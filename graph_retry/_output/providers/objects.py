"""Convert the objects of providers' own clients into LangChain messages."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from graph_retry._issues import attempt
from graph_retry._json import is_object
from graph_retry._output.providers import PROVIDERS
from graph_retry._output.providers.openai import error_body
from graph_retry._output.providers.provider import Finish, in_snake_case

_FINISH_WORDS: dict[str, Finish] = {
    word: kind for provider in PROVIDERS for word, kind in provider.finish_words.items()
}


class ResponseError(Exception):
    """The provider's response holds an error in place of an answer; `body` is this error."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(str(body.get("message") or body))
        self.body = body


def raise_error_in(result: Any) -> None:
    """Raise the error that a response holds in place of an answer.

    Raises:
        ResponseError: If the response holds an error.
    """
    body, failed = attempt(error_body, result)  # An unknown object's attributes may raise.
    if body and not failed:
        raise ResponseError(body)


def message_of(result: Any) -> BaseMessage | None:
    """Return a client's object as a message, or None if its type is unknown."""
    if isinstance(result, str | bytes | int | float | BaseMessage):
        return result if isinstance(result, BaseMessage) else None
    response = response_of_json(result) or result
    read = (provider.message(response) for provider in PROVIDERS)
    return next((message for message in read if message is not None), None)


def response_of_json(given: Any) -> Any | None:
    """Return a provider's JSON response as an object with attributes, or None.

    `requests.post(…).json()`, a client's `model_dump()` and botocore's `converse` give such dicts.
    A dict counts as a response only if it has the provider's keys, including a message's role.

    Example:
        >>> said = {"role": "assistant", "content": "Hello."}
        >>> response_of_json({"choices": [{"message": said}]}).choices[0].message.content
        'Hello.'
        >>> response_of_json({"choices": ["a", "b"]})
    """
    if not is_object(given):
        return None
    made = (provider.of_json(given) for provider in PROVIDERS)
    return next((response for response in made if response is not None), None)


def chunk_of(piece: Any) -> tuple[AIMessageChunk | None, dict[str, Any]]:
    """Return a piece of a stream as a message chunk, or None if its type is unknown.

    The second value holds usage and finish reason, if these replace the ones of earlier pieces.
    """
    read = (provider.chunk(piece) for provider in PROVIDERS)
    found = next((chunk for chunk in read if chunk is not None), None)
    if found is not None:
        return found
    message = message_of(piece)
    return _of_message(message) if isinstance(message, AIMessage) else None, {}


def _of_message(message: AIMessage) -> AIMessageChunk:
    return AIMessageChunk(
        content=message.content,
        tool_calls=message.tool_calls,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        additional_kwargs=message.additional_kwargs,
    )


_USAGE_WORDS = {
    **{name: name for name in ("input_tokens", "output_tokens", "total_tokens")},
    **{word: name for provider in PROVIDERS for word, name in provider.usage_words.items()},
}


def token_name_of(word: str) -> str | None:
    """Return LangChain's name for a provider's name of a token count, or None if it is unknown."""
    return _USAGE_WORDS.get(in_snake_case(word))


def meaning_of(finish_reason: str | None) -> Finish | None:
    """Return the meaning of a provider's finish reason, or None if it is unknown."""
    return _FINISH_WORDS.get((finish_reason or "").lower())
