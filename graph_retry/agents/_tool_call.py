"""Prepare the tool calls of an agent for review: options, approval, checks of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest, ToolRuntime
from pydantic import BaseModel, ValidationError

from graph_retry.agents._request import RequestChangedError
from graph_retry.agents._tool_result import ApprovalNeeded
from graph_retry.calls import JsonParams
from graph_retry.options import RetryOptions
from graph_retry.output import Checked, build_validator, check_inside, wrap_error
from graph_retry.plugins import is_object
from graph_retry.records import Issue, Repair

When = bool | Callable[[ToolCallRequest], bool]
"""True if a person must approve each call of a tool, or a function of the call that says so."""

LabelsOf = Callable[[ModelRequest[Any] | ToolCallRequest], Mapping[str, str]]
"""A function that returns the labels of a call from the request of a model or tool call."""

_ASKING = ("feedback", "lessons", "repair", "strict", "locked", "name")
_OF_MODELS = (*_ASKING, "auto_retries", "transient", "format", "check_formats")


def tool_options(options: RetryOptions) -> RetryOptions:
    """Return those options that apply to tool calls.

    `review="always"` asks about valid answers of a model, so it becomes `review=True`.
    """
    kept: Any = {name: value for name, value in options.items() if name not in _OF_MODELS}
    if kept.get("review") == "always":
        kept["review"] = True
    return cast("RetryOptions", kept)


def labelled(
    options: RetryOptions, labels_of: LabelsOf | None, request: ModelRequest[Any] | ToolCallRequest
) -> RetryOptions:
    """Return the options of one call, with the labels that `labels_of` returns for it.

    Raises:
        TypeError: If `labels_of` returns no dict.
    """
    labels: Any = {} if labels_of is None else labels_of(request)
    if not is_object(labels):
        raise TypeError(f"`labels_of` returned {type(labels).__name__}: return a dict of texts.")
    known = options.get("labels", {})
    return {**options, "labels": {**known, **labels}} if labels else {**options}


def tool_issues(tool: BaseTool, args: Mapping[str, Any]) -> list[Issue]:
    """Return the issues of the arguments of a tool call, by the schema of the tool."""
    schema: Any = tool.tool_call_schema
    if is_object(schema):
        return build_validator(schema).check(args).issues
    try:
        cast("type[BaseModel]", schema).model_validate(args)
    except ValidationError as error:
        return wrap_error(error, args)
    return []


def args_inside(
    tool: BaseTool | None, args: dict[str, Any]
) -> tuple[dict[str, Any], list[Repair], list[Issue]]:
    """Remove a wrapper such as `{"arguments": {…}}` from the arguments of a tool call.

    Return the arguments, the repairs, and issues that name unknown keys. A tool would ignore
    unknown keys and run with its default values.
    """
    checked = Checked()
    if tool is not None:
        with suppress(TypeError):  # An argument of the tool may have no JSON form.
            checked = check_inside(build_validator(tool.tool_call_schema), args)
    if checked.ok and checked.is_unwrapped and is_object(checked.judged):
        return checked.judged, unwrapped_in(checked), []
    unknown = [each for each in checked.issues if each["code"] == "unknown_keys"]
    return args, [], [each for each in unknown if not each["path"]]


def unwrapped_in(checked: Checked) -> list[Repair]:
    return [repair for repair in checked.repairs if repair["kind"] == "unwrapped"]


def check_approved(request: ToolCallRequest, when: When, attempt: int) -> None:
    """Raise in the first attempt of a tool call that a person must approve.

    Each later attempt follows a decision of a person.

    Raises:
        ApprovalNeeded: If `when` asks for an approval of this call.
        TypeError: If the function `when` does not return a bool.
    """
    if attempt > 1 or when is False:
        return
    asks: Any = when if when is True else when(request)
    if not isinstance(asks, bool):
        kind = type(asks).__name__
        name = request.tool_call["name"]
        raise TypeError(
            f"the function in `approve` for `{name}` returned {kind}: return a bool. `{name}` "
            "has not been executed."
        )
    if asks:
        raise ApprovalNeeded(f"`{request.tool_call['name']}` has not been executed yet")


class _InStep:
    """A tool that runs with the config of the present attempt instead of the agent's config.

    With the agent's config, a second attempt would get the answers that the first attempt got in an
    `interrupt` of the tool, and the state of agents that the tool invoked. Inner middleware sees an
    object of the tool's own class.
    """

    def __init__(self, tool: Any, args: dict[str, Any]) -> None:
        self._tool, self._args = tool, args

    def __getattribute__(self, name: str) -> Any:
        # `isinstance` reads the class in this way.
        found: Any = object.__getattribute__(self, "_tool" if name == "__class__" else name)
        return found.__class__ if name == "__class__" else found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._tool.__reduce_ex__(protocol)  # A copy of this object is a copy of the tool.

    def invoke(self, given: Any, config: RunnableConfig | None = None, **more: Any) -> Any:
        self._check(given)
        return self._tool.invoke(given, _of_step(config), **more)

    async def ainvoke(self, given: Any, config: RunnableConfig | None = None, **more: Any) -> Any:
        self._check(given)
        return await self._tool.ainvoke(given, _of_step(config), **more)

    def is_of(self, args: dict[str, Any]) -> bool:
        """Return whether this tool was made for the attempt with this very `args` object."""
        return self._args is args

    def _check(self, given: Any) -> None:
        """Check that middleware has not changed the arguments after a person saw them.

        Raises:
            RequestChangedError: If the arguments differ from the attempt's. Arguments that
                LangGraph injects are not compared.
        """
        sent = given.get("args") if is_object(given) else None
        schema: Any = self._tool.tool_call_schema
        shown = schema if is_object(schema) else schema.model_json_schema()
        names = {*self._args, *shown.get("properties", ())}
        if is_object(sent) and {key: sent[key] for key in sent if key in names} != self._args:
            raise RequestChangedError("args")


def _of_step(config: RunnableConfig | None) -> RunnableConfig:
    return {**ensure_config(config), "configurable": get_config().get("configurable", {})}


@dataclass
class _AttemptCall(ToolCallRequest):
    """The tool request of one attempt. Its tool, or one that replaces it, runs as an `_InStep`.

    args: The arguments that a person saw.
    """

    args: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        tool: Any = self.tool
        if tool is not None and not (type(tool) is _InStep and tool.is_of(self.args)):
            object.__setattr__(self, "tool", _InStep(tool, self.args))


def of_attempt(request: ToolCallRequest, args: dict[str, Any]) -> ToolCallRequest:
    """Return the tool request of one attempt, with the arguments `args`."""
    known = cast("ToolRuntime[Any, Any]", request.runtime)
    runtime = replace(known, config=_of_step(known.config))
    call: ToolCall = {**request.tool_call, "args": args}
    # Inner middleware may change the arguments in place.
    tool = cast("Any", request).tool
    return _AttemptCall(call, tool, request.state, runtime, args=deepcopy(args))


def args_of(tool: BaseTool | None, args: dict[str, Any]) -> JsonParams:
    """Return the arguments of a tool call as params. An edit of them must fit the tool's schema."""
    of_tool: Any = {
        "why_no_comment": "params of a tool call have only the tool's arguments",
        "of_model": True,
    }
    if tool is None:
        return JsonParams(args, **of_tool)
    known: Any = tool.tool_call_schema
    schema = known if is_object(known) else known.model_json_schema()
    return JsonParams(args, schema, partial(tool_issues, tool), **of_tool)
