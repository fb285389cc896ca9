"""Make the tool calls of an agent, with retries and reviews for the chosen (wrapped) tools."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import AIMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from graph_retry import AttemptContext
from graph_retry.agents._order import Wrapped, misplaced
from graph_retry.agents._request import RequestChangedError
from graph_retry.agents._tool_call import (
    LabelsOf,
    When,
    args_of,
    check_approved,
    labelled,
    of_attempt,
)
from graph_retry.agents._tool_result import (
    Result,
    checked_result,
    message_calling,
    rejection,
    reported,
    told_result,
    tool_message,
)
from graph_retry.calls import Call, running_task
from graph_retry.errors import AttemptsExhausted, CallCancelled
from graph_retry.options import RetryOptions
from graph_retry.plugins import (
    WrongArgumentError,
    as_run,
    closest,
    did_you_mean,
    is_array,
    sync_or_async,
)

_LOG = logging.getLogger("graph_retry")


class _RaisedError(GraphBubbleUp):
    """An unwrapped tool raised an error. Nothing is saved, so the next run calls the tool again."""


@dataclass
class ToolCalls:
    """The tool calls of an agent, and the options that apply to them.

    owner: The name of the middleware.
    wrapped: The names of the tools whose failures are reviewed; True for all tools.
    approve: The tools that need an approval, by name, each with True or a function of the call.
    repeatable: The names of the tools that the option `transient` may repeat.
    transient: A dict with the option `transient`; empty if it is not given.
    rejected: The effect of a rejection; see `rejected_tools`.
    tells: Whether the model is told about changed calls.
    options: The options of each call.
    labels_of: A function that returns the labels of one call, or None.
    is_of_agent: Whether `create_agent` has made the node that runs the tools.
    """

    owner: str
    wrapped: Wrapped
    approve: Mapping[str, When]
    repeatable: frozenset[str]
    transient: RetryOptions
    rejected: Literal["tell", "raise"]
    tells: bool
    options: RetryOptions
    labels_of: LabelsOf | None
    is_of_agent: bool = field(default=False, init=False)
    _has_told: bool = field(default=False, init=False)

    async def made(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Result:
        """Make a tool call. If a wrapped tool fails, retry and review the call.

        In a sync run, `handler` is sync.
        """
        if not self._wraps(request):
            if self._is_shared(request):
                return await _kept(request, handler)
            return cast("Result", await sync_or_async(handler, handler, request))

        @as_run
        async def use(args: dict[str, Any], context: AttemptContext) -> Any:
            self._check_approved(request, context)
            sent = of_attempt(request, args)
            return checked_result(request, await sync_or_async(handler, handler, sent))

        call = self._call(use, request)
        try:
            output, attempts = await sync_or_async(call.invoke, call.ainvoke)
        except (AttemptsExhausted, CallCancelled, RequestChangedError) as error:
            return self._ended(request, error)
        return told_result(request, output, attempts, tells=self.tells)

    def staying(self, request: ToolCallRequest, result: Result) -> Result:
        """Return the result of a tool. A handoff beside other tool calls becomes an error.

        A handoff leaves this agent at once, for another agent. LangGraph would drop the results and
        the open questions of the other tool calls.
        """
        message = message_calling(request)
        is_alone = message is None or len(message.tool_calls) < 2 or self._is_shared(request)
        listed: list[Any] = [*(result if is_array(result) else [result])]
        is_handoff = any(getattr(each, "graph", None) == Command.PARENT for each in listed)
        if not (self.wrapped and is_handoff) or is_alone:
            return result
        what = f"`{request.tool_call['name']}` leaves this agent, and would end the other tool"
        told = f"Nothing was handed over: {what} calls of your message. Call it alone."
        return tool_message(request, told, status="error")

    def tell_unknown(self, request: ModelRequest[Any]) -> None:
        """Warn at the first model call about names in the options that are not the model's tools.

        Raises:
            WrongArgumentError: If `approve` misspells a tool, which would then run unasked.
        """
        if self._has_told:
            return
        named = frozenset(self.approve) if self.wrapped is True else self.wrapped
        offered = {
            str(tool.get("name") if isinstance(tool, dict) else tool.name) for tool in request.tools
        }
        tools = tuple(sorted(offered))
        known = ", ".join(f"`{tool}`" for tool in tools) or "none"
        for name in sorted(named - offered):
            option = "approve" if name in self.approve else "tools"
            told = (
                f"`{option}` of `RetryMiddleware` names `{name}`, which the model cannot call: its "
                f"tools are {known}.{did_you_mean(name, tools)}"
            )
            if option == "approve" and closest(name, tools) in offered - named:
                raise WrongArgumentError(told)
            _LOG.warning("%s", told)
        self._has_told = True

    def _wraps(self, request: ToolCallRequest) -> bool:
        return self.wrapped is True or request.tool_call["name"] in self.wrapped

    def _is_shared(self, request: ToolCallRequest) -> bool:
        """Return whether one task runs all tools of a message, and starts again after a pause.

        LangChain's agent sends each tool call to a task of its own. One task may run all tools if
        middleware jumps to the tools, or if the graph has its own `ToolNode`.
        """
        message: AIMessage | None = message_calling(request)
        if message is None or len(message.tool_calls) < 2:
            return False
        execution = running_task()
        return execution is not None and not (self.is_of_agent and execution.is_sent)

    def _call(self, use: Callable[..., Any], request: ToolCallRequest) -> Call:
        name = request.tool_call["name"]
        options = labelled(self.options, self.labels_of, request)
        if name in self.repeatable:
            options |= self.transient
        if self.approve.get(name):
            options.pop("reviewer", None)
            options["max_attempts"] = options.get("max_attempts", 10) + 1
        return _call_of(use, request, options)

    def _check_approved(self, request: ToolCallRequest, context: AttemptContext) -> None:
        when = self.approve.get(request.tool_call["name"], False)
        check_approved(request, when, context.attempt)

    def _ended(self, request: ToolCallRequest, error: Exception) -> Result:
        if isinstance(error, RequestChangedError):
            raise misplaced(self.owner, error.field) from None
        if isinstance(error, AttemptsExhausted):
            return reported(request, error)
        if not isinstance(error, CallCancelled) or self.rejected == "raise":
            raise error
        return rejection(request, error.reason, error.attempts)


async def _kept(request: ToolCallRequest, handler: Callable[..., Any]) -> Result:
    """Call an unwrapped tool, and save its result in case another tool waits for a person."""

    @as_run
    async def use(args: dict[str, Any]) -> Any:
        try:
            return await sync_or_async(handler, handler, of_attempt(request, args))
        except (
            Exception
        ) as error:  # The error must end the run, and must not become a failed attempt.
            raise error if isinstance(error, GraphBubbleUp) else _RaisedError from error

    call = _call_of(use, request, {"review": False, "auto_retries": 0})
    try:
        return cast("Result", (await sync_or_async(call.invoke, call.ainvoke))[0])
    except _RaisedError as error:
        raise cast("Exception", error.__cause__) from None


def _call_of(use: Callable[..., Any], request: ToolCallRequest, options: RetryOptions) -> Call:
    call = request.tool_call
    cast("Any", use).__name__ = call["name"]  # Error messages use the function's name.
    options = {**options, "name": call["name"]}
    if call["id"]:
        options["key"] = call["id"]
    args = dict(call["args"])
    return Call(use, args, options=options, codec=args_of(request.tool, args))
