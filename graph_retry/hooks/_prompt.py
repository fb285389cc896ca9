"""Read and replace fields of params of any type, above all the prompt."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from graph_retry._core.params.additions import BARE, Added, moved, named_fields, removed, without
from graph_retry._core.params.fields import fields_of
from graph_retry.plugins import is_array
from graph_retry.records import Addition

_MESSAGES = {"assistant": AIMessage, "user": HumanMessage, "system": SystemMessage}


def with_fields(params: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy of params with some fields replaced.

    Raises:
        ValueError: If the params lack one of the fields.

    Example:
        >>> with_fields({"model": "small", "seed": 1}, {"model": "large"})
        {'model': 'large', 'seed': 1}
    """
    require_fields(params, changes, "the hook")
    if isinstance(params, BaseModel):
        return params.model_copy(update=changes)
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        return dataclasses.replace(params, **changes)
    return {**cast("dict[str, Any]", params), **changes}


def require_fields(params: Any, names: Iterable[str], owner: str) -> None:
    """Refuse params that lack a field which the hook `owner` changes.

    Raises:
        ValueError: If the params lack a field; the message names the field.
    """
    fields = fields_of(params)
    for name in names:
        if name not in fields:
            known = ", ".join(f"`{field}`" for field in list(fields)[:20]) or "none"
            raise ValueError(
                f"`{owner}` changes the field `{name}`, which the params do not have (they have "
                f"{known}): add it to the params, so that it can be seen and edited, or leave it "
                "out of the hook."
            )


def prompt_field(fields: Mapping[str, Any], field: str | None) -> str | None:
    """Return the name of the prompt's field: `field` if given, otherwise `messages` or `prompt`.

    None means that there is no such field, or that it holds neither a text nor a list.
    """
    names = (field,) if field else ("", "messages", "prompt")
    name = next((name for name in names if fields.get(name) is not None), None)
    is_prompt = name is not None and (isinstance(fields[name], str) or is_array(fields[name]))
    return name if is_prompt else None


class Prompt:
    """The prompt in some params, or the params themselves if they are one text.

    `value` is a string, or a list of messages (LangChain's messages or dicts). `parts` are the
    parts of it that this library added.

    Example:
        >>> Prompt({"prompt": "Who?"}).replaced("Who is it?")
        {'prompt': 'Who is it?'}
    """

    def __init__(
        self,
        params: Any,
        field: str | None = None,
        *,
        owner: str = "feedback",
        added: Added | None = None,
    ) -> None:
        """Find the prompt: in `field` if it is given, otherwise in `messages` or `prompt`.

        `added` tells which parts of these params, or of the params that they were made from, this
        library added.

        Raises:
            ValueError: If there is no prompt, or it is neither a text nor a list.
        """
        known = {"": params} if isinstance(params, str) else fields_of(params)
        name = prompt_field(known, field)
        if name is None:
            looked = field or "messages` or `prompt"
            raise ValueError(
                f"{owner} found no text or list of messages in the params' `{looked}`: name the "
                f"field to write to, e.g. `{owner}(field='instructions')`."
            )
        self._params, self._name = params, name
        self.value: Any = known[name]
        everywhere = [] if added is None else added.still_in(named_fields(params))
        self.parts = [part for part in everywhere if part["field"] == self.field]
        self._elsewhere = [part for part in everywhere if part["field"] != self.field]

    @property
    def field(self) -> str:
        """The name of the prompt's field in the JSON of the params."""
        return self._name or BARE

    def without(self, *by: str) -> Self:
        """Return the prompt without its parts by these authors, such as `feedback`."""
        gone = [part for part in self.parts if part["by"] in by]
        return self._changed(without(self.value, gone), removed(self.parts, by))

    def adding(self, by: Any, piece: str | list[Any], at: int) -> Self:
        """Return the prompt with a part inserted at a place."""
        part: Addition = {"by": by, "field": self.field, "start": at, "end": at + len(piece)}
        value = self.value[:at] + piece + self.value[at:]
        return self._changed(value, [*moved(self.parts, at, len(piece)), part])

    def _changed(self, value: Any, parts: list[Addition]) -> Self:
        made = object.__new__(type(self))
        vars(made).update(vars(self), value=value, parts=parts)
        return made

    @property
    def params(self) -> Any:
        """A copy of the params with this prompt."""
        return self.replaced(self.value)

    @property
    def added(self) -> Added:
        """The parts of `params` that this library added."""
        parts = sorted([*self._elsewhere, *self.parts], key=lambda part: part["start"])
        return Added(named_fields(self.params), parts)

    def replaced(self, value: str | list[Any]) -> Any:
        """Return a copy of the params with another prompt."""
        return with_fields(self._params, {self._name: value}) if self._name else value


def turns(messages: Sequence[Any], *said: tuple[str, str]) -> list[Any]:
    """Make messages from roles and texts, of the same type as the other messages."""
    if messages and isinstance(messages[0], BaseMessage):
        return [_MESSAGES[role](text) for role, text in said]
    return [{"role": role, "content": text} for role, text in said]


def with_turn(messages: list[Any], role: str, text: str) -> list[Any]:
    """Insert a message after the leading system messages."""
    start = after_system(messages)
    return [*messages[:start], *turns(messages, (role, text)), *messages[start:]]


def after_system(messages: Sequence[Any]) -> int:
    """Return the number of leading system messages."""
    return next((n for n, message in enumerate(messages) if not is_system(message)), len(messages))


def content_of(message: Any) -> Any:
    """Return the content of a LangChain message or a dict."""
    return fields_of(message).get("content")


def is_system(message: Any) -> bool:
    """Return whether a message has the role `system` or `developer`."""
    fields = fields_of(message)
    return fields.get("role", fields.get("type")) in ("system", "developer")


def plain_text(prompt: str | list[Any]) -> str:
    """Return a prompt as one text, to measure or compare it."""
    if isinstance(prompt, str):
        return prompt
    return "\n".join(str(content_of(message)) for message in prompt)
