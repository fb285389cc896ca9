"""Middleware that retries and reviews model and tool calls of LangChain's agents.

It needs the extra `agents`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Literal, NotRequired, Unpack, cast
from uuid import uuid4

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
)
from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
from langchain.agents.structured_output import StructuredOutputError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from graph_retry.agents._answer import AnswerValidator, carrying_answer, message_of_response
from graph_retry.agents._conversation import answered, mended_update, repair_history
from graph_retry.agents._order import Wrapped, check_order, listed_with, misplaced
from graph_retry.agents._request import (
    ModelParams,
    RequestChangedError,
    Sending,
    key_of,
    name_of_model,
    params_of,
    requested,
)
from graph_retry.agents._tool_call import LabelsOf, When, labelled, tool_options
from graph_retry.agents._tool_result import ledger_of
from graph_retry.agents._tools import ToolCalls
from graph_retry.calls import Call
from graph_retry.errors import CallCancelled
from graph_retry.options import OnRetry, RetryOptions, settle
from graph_retry.plugins import (
    Size,
    Within,
    as_run,
    checked,
    is_array,
    run_async,
    run_sync,
    sync_or_async,
)
from graph_retry.records import Attempt, RepairLevel

__all__ = ["Ledgers", "RetryMiddleware", "RetryState", "merge_ledgers", "repair_history"]

Ledgers = dict[str, list[Attempt]]

_ToolName = Annotated[str, "the name of a tool, a text such as `tool.name`"]
_LOG = logging.getLogger("graph_retry")
_APPROVED = "a dict of tools with True or a function, such as {'send_mail': True}, or leave it out"
_ASK = "Answer again: call the tools with arguments that fit, or give the required response."


@checked
def merge_ledgers(ledgers: Ledgers | None, new: Ledgers | None) -> Ledgers:
    """Add ledgers to those in an agent's state. A ledger is the list of all attempts of one call.

    This function is the reducer of the state key `ledgers`, a dict of ledgers by call id. If two
    calls have the same id, the later call's id gets a number, as in `a#2`.

    Example:
        >>> merge_ledgers({"a": [{"number": 1}]}, {"a": [{"number": 2}], "b": []})
        {'a': [{'number': 1}], 'a#2': [{'number': 2}], 'b': []}
    """
    merged = dict(ledgers or {})
    for known_as, attempts in (new or {}).items():
        names = (f"{known_as}#{number}" if number > 1 else known_as for number in count(1))
        merged[next(name for name in names if merged.get(name, attempts) == attempts)] = attempts
    return merged


class RetryState(AgentState[Any]):
    """The agent's state, with the ledgers of its calls under the key `ledgers`.

    `ledgers` is a dict of ledgers (the attempts of one call) by id. The id is that of the model's
    message or of the tool call. A call that succeeded at once, without a review, has no entry.
    `graph_retry.threads.attempts_of` reads the ledgers of all calls.

    attempts: This key stays empty. It is declared because a LangGraph server shows the state of
        function calls only for graphs with this key.
    """

    ledgers: NotRequired[Annotated[Ledgers, OmitFromInput, merge_ledgers]]
    attempts: NotRequired[Annotated[list[Attempt], PrivateStateAttr]]


# `AgentMiddleware` is invariant: with `RetryState` here, a list of this middleware and another one
# would have no type that `create_agent` takes.
class RetryMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Review the failed model calls of an agent and, with `tools`, its failed tool calls.

    A model call fails if it raises, if its tool calls do not fit the tools, or if the structured
    response is not valid. If the arguments of a tool call or the structured response are broken
    JSON, the middleware first repairs them, unless this would lose data. The params of a model call
    are `model`, `system_prompt`, `settings` and the last `messages`. The params of a tool call are
    the tool's arguments. Reviews wait in the agent's own thread, so the agent needs a checkpointer.

    In the list `middleware`, put `RetryMiddleware` after any middleware that changes requests. Put
    it before `ModelRetryMiddleware`, `ToolRetryMiddleware` and `ModelFallbackMiddleware`, so that
    these act within one attempt. `create_agent` raises a `ValueError` if one of LangChain's own
    middlewares is in the wrong place.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        >>> model = GenericFakeChatModel(messages=iter([AIMessage("Hello!")]))
        >>> agent = create_agent(model, middleware=[RetryMiddleware(feedback="errors_only")])
        >>> agent.invoke({"messages": [("user", "Hi")]})["messages"][-1].content
        'Hello!'
    """

    state_schema = RetryState

    @checked
    def __init__(
        self,
        on_retry: OnRetry[Any] = None,
        *,
        tools: bool | Sequence[_ToolName] = False,
        approve: Annotated[Mapping[_ToolName, When], Within(1), _APPROVED] | None = None,
        models: Mapping[str, BaseChatModel] | None = None,
        messages: Size = 6,
        one_at_a_time: bool = False,
        rejected_model: Literal["end", "raise"] = "end",
        rejected_tools: Literal["tell", "raise"] = "tell",
        tell_model: bool = True,
        repeatable: Sequence[_ToolName] | None = None,
        labels_of: LabelsOf | None = None,
        **options: Unpack[RetryOptions],
    ) -> None:
        """Create the middleware.

        Args:
            on_retry: A hook for model calls, `(error, attempt, params) -> new params | None`, or a
                list of hooks, tried in order. `params` has `model`, `system_prompt`, `settings` and
                `messages`.
            tools: The tools whose failed calls are reviewed as well: `True` for all, or a list of
                names (default: none). A tool call fails if the tool raises, or if its result has
                the status `error`.
            approve: The tools that a person must approve before they run, such as `{"send_mail":
                True}`. Instead of True, give a function `ToolCallRequest -> bool`. The person may
                also edit the arguments, reject the call, or supply the tool's result. Failed calls
                of these tools are reviewed as well. The option `reviewer` does not apply to
                approvals.
            models: A dict of chat models by name. A hook or a person may choose one of them instead
                of the agent's model.
            messages: The number of last messages of the conversation that can be changed.
            one_at_a_time: Whether a message of the model may call only one tool. A message with
                several tool calls is then a failed attempt. Set this for web chats and inboxes,
                which cannot answer two questions at once. If the model supports
                `parallel_tool_calls=False`, bind it to avoid such attempts.
            rejected_model: The end of the run after a person rejects a model call. `end`: a last
                message reports the rejection. `raise`: the run raises `CallCancelled`.
            rejected_tools: The effect of a rejected tool call. `tell`: the model gets the reason as
                the tool's result, and continues. `raise`: the run raises `CallCancelled`.
            tell_model: Whether the tool's result begins with a note if a person changed the
                arguments or supplied the result. Without the note, the model may repeat its own
                call, or report things that were not done. Give `False` if a program reads the
                results.
            repeatable: The names of tools that are safe to repeat, such as a search. If both
                `transient` and `tools` are given, this list is required, but may be empty.
                `transient` then also repeats transient failures of these tools. Any other tool is
                called only once in each attempt: a payment, for example, may have been made
                although its connection broke.
            labels_of: A function of the `ModelRequest` or `ToolCallRequest` of a call. It returns
                labels of this call, for example the tenant in `request.runtime.context`, beside
                `labels`.
            **options: See `RetryOptions`. `key`, `keys` and `on_cancel` are not allowed.
                `feedback`, `auto_retries`, `lessons`, `repair`, `strict`, `locked`, `name` (default
                `model`) and `review="always"` apply only to model calls.

        Raises:
            WrongArgumentError: If an argument is unknown, or has a value that is not allowed.
        """
        super().__init__()
        if "key" in options:
            raise ValueError(
                "`key` is only for `retry_llm_call`: leave it out, because an agent's calls "
                "have ids of their own."
            )
        self.tools = []
        self._hooks: list[Any] = [*(on_retry if is_array(on_retry) else [on_retry])]
        self._hooks = [hook for hook in self._hooks if hook is not None]
        self._last, self._one_at_a_time = messages, one_at_a_time
        self._rejected_model = rejected_model
        approve = dict(approve or {})
        if approve and not options.get("review", True):
            raise ValueError(
                "`approve` asks a person before a tool runs, but `review` is False: leave one "
                "of them out."
            )
        named: Sequence[str] = () if isinstance(tools, bool) else tools
        self._wraps: Wrapped = True if tools is True else frozenset((*named, *approve))
        if repeatable is None and "transient" in options and self._wraps:
            raise ValueError(
                "`transient` with `tools` needs `repeatable=`: name the tools that are safe to "
                "repeat, unlike a payment. Give `repeatable=[]` to repeat only requests to the "
                "model."
            )
        self._models = dict(models or {})
        settings = settle("model", "function", options, repeatable=repeatable)
        by_default = settings.auto_retries and not on_retry
        told = settings.feedback or (settings.own_feedback if by_default else None)
        self._options: RetryOptions = {"name": "model", **options}
        if (asking := getattr(told, "asking", None)) is not None:
            self._options["feedback"] = asking(_ASK)
        self._repair: RepairLevel = settings.repair[0]
        self._tool_calls = ToolCalls(
            owner=super().name,
            wrapped=self._wraps,
            approve=approve,
            repeatable=frozenset(repeatable or ()),
            transient={"transient": options["transient"]} if "transient" in options else {},
            rejected=rejected_tools,
            tells=tell_model,
            options=tool_options(options),
            labels_of=labels_of,
        )

    @property
    def name(self) -> str:
        """The name of the middleware. If `create_agent` reads it, the list's order is checked."""
        name = super().name
        if listed := listed_with(self):
            self._tool_calls.is_of_agent = True
            check_order(listed, self, name, self._wraps)
        return name

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ExtendedModelResponse[Any]:
        """Make a model call. If it fails, retry and review it."""
        return run_sync(self._answered(request, handler))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """Do the same as `wrap_model_call`, in async code."""
        return await run_async(self._answered(request, handler))

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Make a tool call. If it fails, retry and review it."""
        made = run_sync(self._tool_calls.made(request, handler))
        return self._tool_calls.staying(request, made)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Do the same as `wrap_tool_call`, in async code."""
        made = await run_async(self._tool_calls.made(request, handler))
        return self._tool_calls.staying(request, made)

    async def _answered(
        self, request: ModelRequest[Any], handler: Callable[..., Any]
    ) -> ExtendedModelResponse[Any]:
        request = request.override(messages=answered(request.messages))

        @as_run
        async def ask(params: ModelParams) -> AIMessage:
            sending = Sending(request, self._models)
            try:
                response = await sync_or_async(handler, handler, requested(sending, params))
                return message_of_response(response, sending.added_tools)
            except StructuredOutputError as error:
                return carrying_answer(error.ai_message, sending.added_tools)

        call = self._model_call(ask, request)
        try:
            return self._mended(request, *await sync_or_async(call.invoke, call.ainvoke))
        except CallCancelled as error:
            return self._ended(error)
        except RequestChangedError as error:
            raise misplaced(super().name, error.field) from None

    def _model_call(self, ask: Callable[..., Any], request: ModelRequest[Any]) -> Call:
        self._tool_calls.tell_unknown(request)
        params = params_of(request, self._models, self._last)
        validator = AnswerValidator(request, self._repair, one_at_a_time=self._one_at_a_time)
        labels_of = self._tool_calls.labels_of
        options = labelled(self._options, labels_of, request) | {"key": key_of(request, params)}
        cast("Any", ask).__name__ = name_of_model(request.model, self._models)
        hooks = [
            hook.of(request) if isinstance(hook, repair_history) else hook for hook in self._hooks
        ]
        return Call(ask, params, hooks, validator, options)

    def _mended(
        self, request: ModelRequest[Any], response: ModelResponse[Any], attempts: list[Attempt]
    ) -> ExtendedModelResponse[Any]:
        """Add the repaired conversation to the response, if this call repaired it."""
        mending = [
            f"hook:{hook.__name__}" for hook in self._hooks if isinstance(hook, repair_history)
        ]
        mended = mended_update(request, attempts, response.result, mending)
        return _response(response, attempts, mended)

    def _ended(self, error: CallCancelled) -> ExtendedModelResponse[Any]:
        if self._rejected_model == "raise":
            raise error
        why = f": {error.reason}" if error.reason else "."
        message = AIMessage(f"A person stopped this run{why}", id=str(uuid4()))
        return _response(ModelResponse(result=[message]), error.attempts)


def _response(
    response: ModelResponse[Any], attempts: list[Attempt], more: Mapping[str, Any] | None = None
) -> ExtendedModelResponse[Any]:
    message = response.result[0]
    # The message of a person has no id. LangGraph would give it one after the ledger has its key.
    message.id = message.id or str(uuid4())
    update = {**ledger_of(message.id, attempts), **(more or {})}
    return ExtendedModelResponse(response, Command(update=update) if update else None)
