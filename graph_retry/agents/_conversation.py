"""Repair an agent's messages, so that one broken message does not cause a review at each turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast
from uuid import NAMESPACE_OID, uuid4, uuid5

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    RemoveMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from graph_retry.agents._request import EARLIER, ModelParams, as_params, orphans_in, sent_dicts
from graph_retry.errors import AttemptFailed
from graph_retry.hooks import Added, Prompt
from graph_retry.ledger import params_in
from graph_retry.plugins import Size, checked, is_array, is_object
from graph_retry.records import Attempt, author_role

_REFUSED = ("rejected_input", "context_overflow")
_CANCELLED = (
    "The call of `{name}` was cancelled: the conversation went on before it was finished. "
    "It may have taken effect."
)


@checked
class repair_history:  # noqa: N801 - a hook is used like a function
    """Make a hook that repairs an agent's conversation after a provider refused it.

    The hook removes tool results that belong to no tool call. After a failure of the kind
    `context_overflow`, it also shortens long messages in the whole conversation. The repaired
    conversation stays in the agent's state. With `auto_retries=1`, the repair is used at once.
    Otherwise a review suggests it, and a person can edit it.

    longest: Characters that a shortened message keeps: half at its beginning, half at its end.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        >>> from graph_retry.agents import RetryMiddleware
        >>> model = GenericFakeChatModel(messages=iter([AIMessage("Hello!")]))
        >>> mending = RetryMiddleware(repair_history(), auto_retries=1)
        >>> agent = create_agent(model, middleware=[mending])
        >>> agent.invoke({"messages": [("user", "Hi")]})["messages"][-1].content
        'Hello!'
    """

    __name__ = "repair_history"

    def __init__(self, longest: Size = 2_000) -> None:
        self._longest = longest
        self._request: ModelRequest[Any] | None = None

    def of(self, request: ModelRequest[Any]) -> repair_history:
        """Return a copy of this hook that can read the whole conversation of one model call."""
        bound = repair_history(self._longest)
        bound._request = request
        return bound

    def __call__(self, error: AttemptFailed, attempt: int, params: ModelParams) -> Any:
        """Return the params with the repaired conversation; None if nothing needs a repair."""
        del attempt
        if error.kind not in _REFUSED:
            return None
        first = int(getattr(params, EARLIER, 0))
        known = [] if self._request is None else [*map(as_params, self._request.messages[:first])]
        messages = [*known, *params.messages]
        gone = orphans_in(messages)
        mended = [
            None if at in gone else self._shortened(message, error.kind)
            for at, message in enumerate(messages)
        ]
        changed = [at for at, message in enumerate(messages) if mended[at] is not message]
        if not changed:
            return None
        begin = min(first, changed[0])
        update: dict[str, Any] = {"messages": [each for each in mended[begin:] if each is not None]}
        if EARLIER in type(params).model_fields:
            update[EARLIER] = begin
        return params.model_copy(update=update)

    def _shortened(self, message: dict[str, Any], kind: str) -> dict[str, Any]:
        content: Any = message.get("content")
        if kind != "context_overflow":
            return message
        if isinstance(content, str):
            short: Any = self._short(content)
        elif is_array(content):
            short = [
                {**block, "text": self._short(block["text"])}
                if is_object(block) and isinstance(block.get("text"), str)
                else block
                for block in content
            ]
        else:
            return message
        return message if short == content else {**message, "content": short}

    def _short(self, text: str) -> str:
        half = self._longest // 2
        if len(text) <= self._longest:
            return text
        left_out = len(text) - 2 * half
        return f"{text[:half]}\n[{left_out} characters left out]\n{text[len(text) - half :]}"


def answered(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Add a result to each tool call that has none. The result says that the call was cancelled.

    Providers refuse tool calls without a result. A tool call has no result if the user sends a new
    message instead of answering the question about the call.
    """
    made: list[AnyMessage] = []
    for at, message in enumerate(messages):
        made.append(message)
        if not isinstance(message, AIMessage):
            continue
        open_calls = {call["id"]: call["name"] for call in message.tool_calls if call["id"]}
        for later in messages[at + 1 :]:
            if not open_calls:
                break
            if isinstance(later, ToolMessage):
                open_calls.pop(later.tool_call_id, None)
            elif isinstance(later, AIMessage) and any(
                call["id"] in open_calls for call in later.tool_calls
            ):
                break  # Some providers use the same id for several calls.
        made += [
            ToolMessage(
                _CANCELLED.format(name=name),
                tool_call_id=str(known_as),
                name=name,
                status="error",
                id=str(uuid5(NAMESPACE_OID, f"{message.id} {known_as}")),
            )
            for known_as, name in open_calls.items()
        ]
    return made


def mended_update(
    request: ModelRequest[Any],
    attempts: Sequence[Attempt],
    result: Sequence[BaseMessage],
    mending: Sequence[str],
) -> dict[str, Any]:
    """Return the state update that repairs the agent's messages; empty if they need no repair.

    A changed conversation stays in the agent's state only if the provider had refused the old
    conversation. A person, or a hook whose name is in `mending`, must have made the change.
    """
    known: list[AnyMessage] = [*request.state["messages"]]
    mended = answered(known)
    for before, after in pairwise(attempts):
        author = after["author"]
        by_hook = any(part in mending for part in author.split(" and "))
        if _kind_of(before) in _REFUSED and (
            by_hook
            or (author_role(author) == "human" and _is_about_messages(attempts, before, after))
        ):
            lists = [_conversation(request, attempts, each) for each in (before, after)]
            if lists[0] != lists[1]:
                mended = _applied(mended, *lists)
    if mended == known:
        return {}
    for message in (*mended, *result):
        message.id = message.id or str(uuid4())
    return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *mended, *result]}


def _kind_of(attempt: Attempt) -> str | None:
    return attempt["failure"] and attempt["failure"]["kind"]


def _is_about_messages(attempts: Sequence[Attempt], before: Attempt, after: Attempt) -> bool:
    """Return whether a person changed the messages that made a provider refuse the attempt.

    After a context overflow, the messages are the cause. After another refusal, they are the cause
    if the person changed only the messages. An unknown exception may have any cause.
    """
    if _kind_of(before) == "context_overflow":
        return True
    sent = [params_in(attempts, each["number"]) for each in (before, after)]
    others = [
        {key: value for key, value in each.items() if key not in ("messages", EARLIER)}
        for each in sent
        if each is not None
    ]
    is_known = before["failure"] is not None and not before["failure"].get("is_unknown")
    return is_known and others[:1] == others[1:]


def _conversation(
    request: ModelRequest[Any], attempts: Sequence[Attempt], one: Attempt
) -> list[dict[str, Any]]:
    """Return the messages of an attempt, without the comments and feedback added to them."""
    params = params_in(attempts, one["number"])
    if params is None:
        return []
    own = Prompt(params, "messages", added=Added(params, one.get("added") or ())).own.params
    return sent_dicts(request, own)


def _applied(
    messages: Sequence[AnyMessage],
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
) -> list[AnyMessage]:
    """Apply the changes between the messages `before` and `after` to the agent's messages."""
    old = {_key(message): message for message in before}
    new = {_key(message): message for message in after}
    inserted: dict[str | None, list[AnyMessage]] = {}
    place: str | None = None
    for message in after:
        if (key := _key(message)) in old:
            place = key
        else:
            given = cast("list[AnyMessage]", convert_to_messages([dict(message)]))
            inserted.setdefault(place, []).extend(given)
    made = inserted.pop(None, [])
    for known in messages:
        key = _key(as_params(known))
        if key not in old or new.get(key) == old[key]:
            made.append(known)
        elif key in new:
            made += cast("list[AnyMessage]", convert_to_messages([dict(new[key])]))
        made += inserted.pop(key, [])
    return made


def _key(message: Mapping[str, Any]) -> str:
    """Return the id of a message, or its JSON text if it has no id."""
    known_as = message.get("id")
    return str(known_as) if known_as else json.dumps(message, sort_keys=True, default=str)
