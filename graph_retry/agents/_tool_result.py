"""Handle the result of an agent's tool call: errors in it, and its text for the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import TypeIs

from graph_retry.errors import AttemptsExhausted
from graph_retry.ledger import params_in
from graph_retry.plugins import is_array, is_object
from graph_retry.records import Attempt, author_role

Result = ToolMessage | Command[Any]

_REPLACED = (
    "Note: {who} replaced this tool call{when}. The call recorded in your message is the one you "
    "produced, not the one that was executed. This was intentional and authorized. Do not issue "
    "your original call again. Executed instead: {name} with arguments {args}."
)
_SUPPLIED = "Note: this tool call {what}, and {who} supplied the response in its place."
_WHO = {"human": "a person", "agent": "an automatic reviewer"}


class ToolError(Exception):
    """The error for a tool that reports a failure in its result instead of raising an exception."""


class ApprovalNeeded(Exception):
    """The error that stops a tool call until a person approves it."""


def checked_result(request: ToolCallRequest, result: Result) -> Result:
    """Return the result of a tool unchanged; raise if it reports an error.

    Raises:
        ToolError: If the result says that the tool failed, as the results of MCP servers can.
    """
    for message in _messages_in(result):
        if message.status == "error" and message.tool_call_id == request.tool_call["id"]:
            artifact: Any = message.artifact
            told = "" if artifact is None else json.dumps(artifact, default=str)
            raise ToolError(
                str(message.text) or told or "the tool reported an error without a text"
            )
    return result


def has_run(attempts: list[Attempt]) -> bool:
    """Return whether a tool was called. An attempt that waits for approval does not call it."""
    failures = [attempt["failure"] for attempt in attempts]
    return any(
        failure is None or failure["type"] != ApprovalNeeded.__name__ for failure in failures
    )


def rejection(request: ToolCallRequest, reason: str | None, attempts: list[Attempt]) -> Result:
    """Return the result of a rejected tool call: a text for the model, and the attempts."""
    name, why = request.tool_call["name"], f": {reason}" if reason else ""
    told = f"A person rejected the call of `{name}`, which has not been executed{why}."
    if has_run(attempts):
        told = f"The call of `{name}` failed, and a person stopped it{why}."
    message = tool_message(request, told, status="error")
    return with_update(message, ledger_of(str(request.tool_call["id"]), attempts))


def told_result(
    request: ToolCallRequest, output: Any, attempts: list[Attempt], *, tells: bool
) -> Result:
    """Return the result of a tool call, by the tool or a person, as the agent expects it.

    If the executed call differs from the call in the model's message, the result has a note.
    Without the note, the model would repeat its call, or report things that were not done.
    """
    # No model reads the result of a tool that ends the run.
    is_read = not getattr(request.tool, "return_direct", False)
    note = _note(request, attempts) if tells and is_read else None
    result = output if _is_result(output) else _message_of(request, output)
    if note is not None:
        result = _changed(result, lambda message: _with_note(request, message, note))
    update = ledger_of(str(request.tool_call["id"]), attempts)
    return with_update(result, update)


def _note(request: ToolCallRequest, attempts: list[Attempt]) -> str | None:
    """Return the note for the model about a changed tool call; None if the call was not changed."""
    last = attempts[-1]
    decided: Any = last["decision"] or {}
    if decided.get("type") == "respond":
        who = _WHO.get(author_role(str(decided.get("author"))), "a person")
        what = "failed" if has_run(attempts) else "was not executed"
        return _SUPPLIED.format(who=who, what=what)
    params, recorded = params_in(attempts), _recorded(request)
    if len(attempts) == 1 or params is None:
        return None
    if params == recorded == request.tool_call["args"]:
        return None
    who = _WHO.get(author_role(last["author"]), "an automatic rule")
    args = json.dumps(params, ensure_ascii=False, default=str)
    # Middleware before this one, which replaced the call first, notes the call that failed.
    when = " after it had failed" if has_run(attempts[:-1]) else ""
    return _REPLACED.format(who=who, when=when, name=request.tool_call["name"], args=args)


def _recorded(request: ToolCallRequest) -> dict[str, Any]:
    """Return the arguments of a tool call as they are in the model's message."""
    message, known_as = message_calling(request), request.tool_call["id"]
    calls = () if message is None else message.tool_calls
    found = (call["args"] for call in calls if call["id"] == known_as)
    return next(found, request.tool_call["args"])


def message_calling(request: ToolCallRequest) -> AIMessage | None:
    """Return the message in state that makes a tool call, or None."""
    state: Any = request.state
    known = state.get("messages") if is_object(state) else getattr(state, "messages", state)
    for message in reversed(known if is_array(known) else ()):
        said = message if isinstance(message, AIMessage) else None
        if any(call["id"] == request.tool_call["id"] for call in (said.tool_calls if said else ())):
            return said
    return None


def _with_note(request: ToolCallRequest, message: ToolMessage, note: str) -> ToolMessage:
    if message.tool_call_id != request.tool_call["id"]:
        return message
    content: Any = message.content
    if isinstance(content, str):
        content = f"{note}\n\nTool response:\n{content}" if content else note
    elif content and all(isinstance(block, str) for block in content):
        content = [note, *content]
    else:  # Providers may refuse texts beside blocks.
        content = [{"type": "text", "text": note}, *content]
    return message.model_copy(update={"content": content})


def _is_result(value: Any) -> bool:
    return _is_one(value) or (is_array(value) and bool(value) and all(map(_is_one, value)))


def _is_one(value: object) -> TypeIs[ToolMessage | Command[Any]]:
    return isinstance(value, ToolMessage | Command)


def _messages_in(result: Any) -> Iterator[ToolMessage]:
    """Yield the tool messages in a result, which is a message, a `Command` or a list of these."""
    if isinstance(result, ToolMessage):
        yield result
    elif isinstance(result, Command):
        for key, value in _pairs(result.update) or ():
            yield from _messages_in(value if is_array(value) else [value]) if key else ()
    elif is_array(result):
        for each in result:
            yield from _messages_in(each) if _is_one(each) else ()


def _changed(result: Any, change: Callable[[ToolMessage], ToolMessage]) -> Any:
    if isinstance(result, ToolMessage):
        return change(result)
    if is_array(result):
        return [_changed(each, change) if _is_one(each) else each for each in result]
    if not isinstance(result, Command):
        return result
    command = cast("Any", result)
    known: Any = command.update
    if (pairs := _pairs(known)) is None:
        return command
    new = [(key, _changed(value, change)) for key, value in pairs]
    return replace(command, update=dict(new) if is_object(known) else new)


def _pairs(update: Any) -> list[tuple[str, Any]] | None:
    """Return the update of a `Command` as pairs (key, value); None if it has another form."""
    if is_object(update):
        return [*update.items()]
    if update is None or (is_array(update) and all(isinstance(each, tuple) for each in update)):
        return [*(update or ())]
    return None


def with_update(result: Any, update: dict[str, Any]) -> Result:
    """Add an update of the agent's state to the result of a tool."""
    if not update:
        return cast("Result", result)
    if isinstance(result, ToolMessage):
        result = Command(update={"messages": [result]})
    command = None if is_array(result) else cast("Command[Any]", result)
    pairs = None if command is None else _pairs(command.update)
    if (
        command is None or pairs is None
    ):  # `ToolNode` takes lists, although the types of middleware do not name them.
        listed: Any = [*(result if is_array(result) else [result]), Command(update=update)]
        return cast("Result", listed)
    is_list = is_array(cast("Any", command).update)  # A key may occur in it several times.
    joined = [*pairs, *update.items()]
    return replace(command, update=joined if is_list else dict(joined))


def ledger_of(known_as: str, attempts: list[Attempt]) -> dict[str, Any]:
    """Return the state update with the attempts of a tool call; empty if it succeeded at once."""
    is_plain = len(attempts) == 1 and not (attempts[0]["decision"] or attempts[0]["repairs"])
    return {} if is_plain else {"ledgers": {known_as: attempts}}


def _message_of(request: ToolCallRequest, output: Any) -> ToolMessage:
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return tool_message(request, text)


def tool_message(
    request: ToolCallRequest, text: str, status: Literal["success", "error"] = "success"
) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(text, tool_call_id=str(call["id"]), name=call["name"], status=status)


def reported(request: ToolCallRequest, error: AttemptsExhausted) -> Result:
    """Return the error that a tool reported in its last result, as LangChain itself would.

    Raises:
        AttemptsExhausted: If the tool raised an exception instead of reporting an error.
    """
    failure = error.attempts[-1]["failure"]
    if failure is None or failure["type"] != ToolError.__name__:
        raise error
    message = tool_message(request, failure["message"], status="error")
    return with_update(message, ledger_of(str(request.tool_call["id"]), error.attempts))
