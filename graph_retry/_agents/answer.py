"""What an agent's model answered: its tool calls held against the tools, its structured response.

In state an answer is one JSON object: the message's own fields, `content` and `tool_calls` first,
and the `structured_response` where the agent wants one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain.agents.structured_output import (
    AutoStrategy,
    ProviderStrategy,
    StructuredOutputError,
    ToolStrategy,
)
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from graph_retry._issues import issue, pydantic_issues
from graph_retry._json import is_array, is_object
from graph_retry._output.build import Validator, build_validator
from graph_retry._output.repair.parse import parse_output
from graph_retry.records import Issue, Repair, RepairLevel

_RESPONSE = "structured_response"
_FORMAT = "response_format"  # which of several structured responses it is
_UNTITLED = "response_format_"
_FIELDS = ("content", "tool_calls", "invalid_tool_calls", _RESPONSE)


def message_of_response(response: ModelResponse[Any]) -> AIMessage:
    """Return the model's message; its answer is what the call is judged by and saved as."""
    message = next(said for said in response.result if isinstance(said, AIMessage))
    answer = _written(message)
    answers_itself = response.structured_response is not None and not message.tool_calls
    if answers_itself:  # the provider gives structured output in the text of the message
        answer[_RESPONSE] = str(message.text)
    return _carrying(message, answer)


def message_of_error(error: StructuredOutputError) -> AIMessage:
    """Return the message whose structured response LangChain could not read."""
    message = error.ai_message
    answer = _written(message)
    if not (message.tool_calls or message.invalid_tool_calls):
        answer[_RESPONSE] = str(message.text)
    return _carrying(message, answer)


def _written(message: AIMessage) -> dict[str, Any]:
    dumped = message.model_dump(mode="json", exclude_defaults=True, exclude={"type"})
    return {key: dumped[key] for key in (*_FIELDS, *dumped) if key in dumped}


def _carrying(message: AIMessage, answer: dict[str, Any]) -> AIMessage:
    """Give a message its answer where structured output of providers stands, too."""
    extra = cast("dict[str, Any]", message.additional_kwargs)
    return message.model_copy(update={"additional_kwargs": {**extra, "parsed": answer}})


class AnswerValidator(Validator):
    """Judge a model's answer by the tools and the response format of its request."""

    name = "answer"

    def __init__(self, request: ModelRequest[Any], repair: RepairLevel) -> None:
        self._tools = {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}
        self._takes_any = any(not isinstance(tool, BaseTool) for tool in request.tools)
        self._repair: RepairLevel = repair
        self._formats = list(_formats_of(request.response_format))
        self.schema = self._formats[0].validator.schema if len(self._formats) == 1 else None

    def rebuild(self, jsonable: Any) -> ModelResponse[Any]:
        """Make the response again that the agent goes on with."""
        answer: dict[str, Any] = dict(jsonable)
        given: Any = answer.pop(_RESPONSE, None)
        place: int | None = answer.pop(_FORMAT, None)
        message = AIMessage.model_validate({"content": "", **answer})
        if place is None:
            return ModelResponse(result=[message])
        wanted = self._formats[place]
        response: Any = wanted.validator.rebuild(given)
        told = wanted.told or f"Returning structured response: {response}"
        tools = [
            ToolMessage(told, tool_call_id=str(call["id"]), name=call["name"])
            for call in message.tool_calls
            if self._format_of(call) == place
        ]
        return ModelResponse(result=[message, *tools], structured_response=response)

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        answer = self._as_answer(value)
        calls, _, issues = self._calls(answer)
        accepted = {key: answer[key] for key in answer if key != "invalid_tool_calls"}
        if calls:
            accepted["tool_calls"] = calls
        structured = [at for at, call in enumerate(calls) if self._format_of(call) is not None]
        for at, call in enumerate(calls):
            if at not in structured:
                issues += _below(f"/tool_calls/{at}", self._tool_issues(call))
        if len(structured) > 1:
            what = "only one structured response may be given, and the message has several"
            issues.append(issue("/tool_calls", what, "several_responses"))
        elif structured:
            (at,) = structured
            issues += _below(f"/tool_calls/{at}/args", self._respond(accepted, calls[at]))
        elif _RESPONSE in accepted:
            issues += _below(f"/{_RESPONSE}", self._respond(accepted))
        return accepted, issues

    def _kept(self, accepted: Any, given: Any) -> tuple[Any, list[Repair]]:
        return accepted, self._calls(self._as_answer(given))[1]

    def _as_answer(self, value: Any) -> dict[str, Any]:
        """Read what a person wrote in a model's stead: words, a message, a structured response."""
        if not is_object(value):
            return {_RESPONSE: value} if self._formats else {"content": str(value)}
        is_message = "content" in value or "tool_calls" in value or _RESPONSE in value
        return dict(value) if is_message or not self._formats else {_RESPONSE: value}

    def _calls(
        self, answer: Mapping[str, Any]
    ) -> tuple[list[dict[str, Any]], list[Repair], list[Issue]]:
        """Return the tool calls, those with broken JSON read as far as that loses nothing."""
        calls: list[dict[str, Any]] = [
            {"id": None, **call, "type": "tool_call"} for call in _listed(answer, "tool_calls")
        ]
        repairs: list[Repair] = []
        issues: list[Issue] = []
        for call in _listed(answer, "invalid_tool_calls"):
            text = call.get("args")
            read = parse_output(text if isinstance(text, str) else "", self._repair)
            if is_object(read.value):
                repairs += read.repairs
                name, known_as = call.get("name") or "", call.get("id")
                made = {"name": name, "args": read.value, "id": known_as, "type": "tool_call"}
                calls.append(made)
            else:
                why = read.failure["message"] if read.failure else "the arguments are no object"
                what = f"the arguments of `{call.get('name')}` cannot be read: {why}"
                issues.append(issue("/tool_calls", what, "invalid_json", None, str(text)))
        return calls, repairs, issues

    def _tool_issues(self, call: Mapping[str, Any]) -> list[Issue]:
        name, args = str(call.get("name")), call.get("args")
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join([*self._tools, *(each.name for each in self._formats)]) or "none"
            what = f"there is no tool `{name}`; the tools are {known}"
            return [] if self._takes_any else [issue("/name", what, "unknown_tool", known)]
        schema: Any = tool.tool_call_schema
        if is_object(schema):
            return _below("/args", build_validator(schema).check(args).issues)
        try:
            cast("type[BaseModel]", schema).model_validate(args)
        except ValidationError as error:
            return _below("/args", pydantic_issues(error, args))
        return []

    def _format_of(self, call: Mapping[str, Any]) -> int | None:
        """Return which structured response a tool call is, if it is one."""
        for place, known in enumerate(self._formats):
            if known.is_called(str(call.get("name"))):
                return place
        return None

    def _respond(self, accepted: dict[str, Any], call: Any = None) -> list[Issue]:
        """Put the structured response into an answer, or say why it is none."""
        value = call["args"] if call else accepted[_RESPONSE]
        place = self._format_of(call) if call else None
        if isinstance(value, str):
            read = parse_output(value, self._repair)
            if read.failure is not None:
                return [issue("", read.failure["message"], "invalid_json", "one JSON value")]
            value = read.value
        issues: list[Issue] = []
        for at in range(len(self._formats)) if place is None else [place]:
            checked = self._formats[at].validator.check(value)
            if checked.ok:
                accepted[_RESPONSE], accepted[_FORMAT] = checked.jsonable, at
                return []
            issues = issues or checked.issues
        return issues


@dataclass(frozen=True)
class _Format:
    """A structured response that an agent may give, and what the model is told about one."""

    name: str
    validator: Validator
    told: str | None

    def is_called(self, name: str) -> bool:
        """Tell whether a tool call of this name gives it."""
        # LangChain makes the name of a schema without a title up, each time anew.
        return name == self.name or (self.name.startswith(_UNTITLED) and name.startswith(_UNTITLED))


def _formats_of(response_format: Any) -> Iterator[_Format]:
    """Yield the structured responses an agent may give."""
    if response_format is None:
        return
    strategy: Any = response_format
    if not isinstance(strategy, ToolStrategy):  # a schema has the same name in any strategy
        is_strategy = isinstance(strategy, ProviderStrategy | AutoStrategy)
        schema: Any = cast("Any", strategy).schema if is_strategy else strategy
        strategy = ToolStrategy[Any](schema)
    known = cast("ToolStrategy[Any]", strategy)
    for spec in known.schema_specs:
        yield _Format(spec.name, build_validator(spec.schema), known.tool_message_content)


def _listed(answer: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value: Any = answer.get(key)
    return [item for item in value if is_object(item)] if is_array(value) else []


def _below(path: str, issues: list[Issue]) -> list[Issue]:
    return [cast("Issue", {**issue, "path": f"{path}{issue['path']}"}) for issue in issues]
