"""Check the answer of an agent's model: its tool calls, and its structured response.

Graph state holds an answer as a JSON object with the fields of LangChain's `AIMessage`. If the
agent has a response format, the object also has a `structured_response`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from uuid import uuid4

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain.agents.structured_output import (
    AutoStrategy,
    ProviderStrategy,
    ToolStrategy,
)
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from graph_retry.agents._tool_call import args_inside, tool_issues, unwrapped_in
from graph_retry.lossless import ParsedOutput, read
from graph_retry.output import (
    Validator,
    build_validator,
    check_inside,
    issue,
    syntax_issue,
    wrap_error,
)
from graph_retry.plugins import is_array, is_object
from graph_retry.records import STRUCTURED_RESPONSE as _RESPONSE
from graph_retry.records import Issue, Repair, RepairLevel

_FORMAT = "response_format"  # The key of the index of the answer's response format.
_ADDED = "tools_of_middleware"  # The key of the names of tools that inner middleware has added.
_UNTITLED = "response_format_"
_CALLS = ("tool_calls", "invalid_tool_calls")
_FIELDS = ("content", *_CALLS, _RESPONSE)


def message_of_response(response: ModelResponse[Any], added: Sequence[str] = ()) -> AIMessage:
    said = next(each for each in response.result if isinstance(each, AIMessage))
    return carrying_answer(said, added)


def carrying_answer(message: AIMessage, added: Sequence[str] = ()) -> AIMessage:
    """Copy the answer of a message to its key `parsed`, where a call looks for structured output.

    `added` has the names of tools from inner middleware. They are saved with the answer, because
    another process may validate the answer.
    """
    dumped = message.model_dump(mode="json", exclude_defaults=True, exclude={"type"})
    answer = {key: dumped[key] for key in (*_FIELDS, *dumped) if key in dumped}
    if added:
        answer[_ADDED] = [*added]
    extra = cast("dict[str, Any]", message.additional_kwargs)
    return message.model_copy(update={"additional_kwargs": {**extra, "parsed": answer}})


@dataclass
class _Reading:
    """The result of reading an answer: its value, its repairs and its issues."""

    accepted: dict[str, Any]
    repairs: list[Repair] = field(default_factory=list[Repair])
    issues: list[Issue] = field(default_factory=list[Issue])
    response: Any = None
    """The structured response that was read, valid or not; None if there is none."""


class AnswerValidator(Validator):
    """A validator of a model's answers, by the tools and the response format of the request."""

    name = "answer"
    wants_message = True

    def __init__(
        self, request: ModelRequest[Any], repair: RepairLevel, *, one_at_a_time: bool
    ) -> None:
        self._tools = {tool.name: tool for tool in request.tools if isinstance(tool, BaseTool)}
        self._takes_any = any(not isinstance(tool, BaseTool) for tool in request.tools)
        self._repair: RepairLevel = repair
        self._one_at_a_time = one_at_a_time
        self._formats = list(_formats_of(request.response_format))
        self.schema = self._formats[0].validator.schema if len(self._formats) == 1 else None

    def rebuild(self, jsonable: Any) -> ModelResponse[Any]:
        """Convert an answer from graph state to the `ModelResponse` that the agent needs."""
        answer: dict[str, Any] = dict(jsonable)
        given: Any = answer.pop(_RESPONSE, None)
        place: int | None = answer.pop(_FORMAT, None)
        answer.pop(_ADDED, None)
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

    def part_to_change(self, value: Any) -> Any:
        """Return the structured response, which a person edits alone.

        If the answer has other tool calls as well, return the whole answer.
        """
        answer = {key: value[key] for key in value if key != _FORMAT} if is_object(value) else value
        reading = self._read(answer)
        calls = reading.accepted.get("tool_calls", [])
        return reading.response if is_object(reading.response) and len(calls) < 2 else value

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        reading = self._read(value)
        return reading.accepted, reading.issues

    def _kept(self, accepted: Any, given: Any) -> tuple[Any, list[Repair], list[Issue]]:
        return accepted, self._read(given).repairs, []

    def _read(self, value: Any) -> _Reading:
        """Read an answer, and list the issues that keep the agent from using it."""
        answer, issues = self._as_message(value)
        reading = _Reading({key: answer[key] for key in answer if key not in _CALLS}, issues=issues)
        if issues:
            return reading
        calls = self._calls(answer, reading)
        if calls:
            reading.accepted["tool_calls"] = calls
        structured = [at for at, call in enumerate(calls) if self._format_of(call) is not None]
        for at, call in enumerate(calls):
            if at not in structured:
                found = self._tool_issues(call)
                is_added = call["name"] in answer.get(_ADDED, ())
                reading.issues += [] if is_added else _below(f"/tool_calls/{at}", found)
        if self._one_at_a_time and len(calls) > 1:
            what = f"the message calls {len(calls)} tools, but only one may be called at a time"
            reading.issues.append(issue("/tool_calls", what, "several_tools", "one tool call"))
        if len(structured) > 1:
            what = "the message has several structured responses, but only one is allowed"
            reading.issues.append(issue("/tool_calls", what, "several_responses"))
        elif structured:
            (at,) = structured
            found = self._respond(reading, calls[at]["args"], self._format_of(calls[at]))
            reading.issues += _below(f"/tool_calls/{at}/args", found)
        elif self._formats and not calls and not reading.issues:
            given = answer.get(_RESPONSE, str(AIMessage.model_validate(reading.accepted).text))
            found = self._respond(reading, given)
            reading.issues += _below(f"/{_RESPONSE}", found)
            if _RESPONSE in answer and not found:
                self._say(reading.accepted)
        return reading

    def _say(self, accepted: dict[str, Any]) -> None:
        """Write a person's structured response into the message, as a model would have written it.

        The message must not be empty, because some providers would refuse it in a later request.
        """
        place: int = accepted[_FORMAT]
        known, response = self._formats[place], accepted[_RESPONSE]
        if known.is_tool:
            call: dict[str, Any] = {"id": f"call_{uuid4()}", "name": known.name, "args": response}
            accepted["tool_calls"] = [{**call, "type": "tool_call"}]
        elif not AIMessage.model_validate({"content": accepted["content"]}).text:
            accepted["content"] = json.dumps(response, ensure_ascii=False)

    def _as_message(self, value: Any) -> tuple[dict[str, Any], list[Issue]]:
        """Return an output as the fields of a message. A person may give a text or response."""
        known = {*_FIELDS, *AIMessage.model_fields, _ADDED}
        if is_object(value) and value.keys() <= known and not value.keys().isdisjoint(_FIELDS):
            message = {"content": "", **value}
        elif self._formats:
            message = {"content": "", _RESPONSE: value}
        elif isinstance(value, str):
            message = {"content": value}
        else:
            what = "give a text, or a message: an object with `content` or `tool_calls`"
            return {}, [issue("", what, "no_message", "a text or a message", type(value).__name__)]
        wrong = [key for key in _CALLS if not _lists_objects(message.get(key, []))]
        if wrong:
            return message, [issue(f"/{wrong[0]}", "must be a list of objects", "list_type")]
        try:
            AIMessage.model_validate({key: message[key] for key in message if key not in _CALLS})
        except ValidationError as error:
            return message, wrap_error(error, message)
        return message, []

    def _calls(self, answer: Mapping[str, Any], reading: _Reading) -> list[dict[str, Any]]:
        """Return the tool calls. Repair broken JSON in their arguments, if this loses no data."""
        listed: list[dict[str, Any]] = [*answer.get("tool_calls", ())]
        for call in answer.get("invalid_tool_calls", ()):
            text = call.get("args")
            tool = self._tools.get(call.get("name"))
            fits = partial(_fits_tool, tool) if tool else None
            place = self._format_of(call)
            fits = fits if place is None else partial(self._fits_format, place=place)
            read = self._parse(text if isinstance(text, str) else "", fits)
            if is_object(read.value):
                reading.repairs += read.repairs
                listed.append({**call, "args": read.value})
            else:
                why = (
                    read.failure["message"]
                    if read.failure
                    else "the arguments are not a JSON object"
                )
                what = f"the arguments of `{call.get('name')}` cannot be read: {why}"
                received = issue("/tool_calls", what, "invalid_json", None, str(text))
                reading.issues.append(received)
        calls: list[dict[str, Any]] = []
        for at, call in enumerate(listed):
            name, args, known_as = call.get("name"), call.get("args", {}), call.get("id")
            is_text = isinstance(name, str) and isinstance(known_as, str | None)
            if not is_text or not is_object(args):
                what = "a tool call needs a text as `name`, and an object as `args`; `id` is a text"
                reading.issues.append(issue(f"/tool_calls/{at}", what, "no_tool_call"))
                continue
            if known_as in [other["id"] for other in calls]:
                what = "two tool calls have the same `id`: give each its own"
                reading.issues.append(issue(f"/tool_calls/{at}/id", what, "id_twice"))
            known_as = known_as or f"call_{uuid4()}"
            args, repairs, unknown = args_inside(self._tools.get(str(name)), args)
            reading.repairs += repairs
            reading.issues += _below(f"/tool_calls/{at}/args", unknown)
            calls.append({"id": known_as, "name": name, "args": args, "type": "tool_call"})
        return calls

    def _tool_issues(self, call: Mapping[str, Any]) -> list[Issue]:
        tool = self._tools.get(call["name"])
        if tool is not None:
            return _below("/args", tool_issues(tool, call["args"]))
        known = ", ".join([*self._tools, *(each.name for each in self._formats)]) or "none"
        what = f"there is no tool `{call['name']}`: choose from {known}"
        return [] if self._takes_any else [issue("/name", what, "unknown_tool", known)]

    def _format_of(self, call: Mapping[str, Any]) -> int | None:
        """Return the index of the response format that a tool call fills, or None."""
        for place, known in enumerate(self._formats):
            if known.is_called(str(call.get("name"))):
                return place
        return None

    def _parse(self, text: str, fits: Callable[[Any], bool] | None) -> ParsedOutput:
        return read(text, self._repair, wants_list=False, fits=fits)

    def _fits_format(self, value: Any, place: int | None) -> bool:
        formats = self._formats if place is None else [self._formats[place]]
        return any(each.validator.check(value).ok for each in formats)

    def _respond(self, reading: _Reading, value: Any, place: int | None = None) -> list[Issue]:
        """Add a structured response to the answer. Return its issues, if it is not valid."""
        if isinstance(value, str):
            read = self._parse(value, partial(self._fits_format, place=place))
            if read.failure is not None:
                return [syntax_issue(read)]
            reading.repairs += read.repairs
            value = read.value
        reading.response = value
        places = range(len(self._formats)) if place is None else [place]
        all_checked = {at: check_inside(self._formats[at].validator, value) for at in places}
        fitting = [at for at, checked in all_checked.items() if checked.ok]
        if len(fitting) > 1:
            names = ", ".join(f"`{self._formats[at].name}`" for at in fitting)
            return [
                issue(
                    "", f"it may be any of {names}: call the tool of this name", "several_formats"
                )
            ]
        for at in fitting:
            reading.accepted.update({_RESPONSE: all_checked[at].jsonable, _FORMAT: at})
            reading.repairs += unwrapped_in(all_checked[at])
        return [] if fitting else all_checked[places[0]].issues


@dataclass(frozen=True)
class _Format:
    name: str
    validator: Validator
    told: str | None
    """The text of the tool message that confirms the response; None for LangChain's own text."""
    is_tool: bool
    """Whether the model gives the response as a tool call."""

    def is_called(self, name: str) -> bool:
        """Return whether a tool call of this name is a response in this format."""
        # For a schema without a title, LangChain invents a new name each time.
        return name == self.name or (self.name.startswith(_UNTITLED) and name.startswith(_UNTITLED))


def _formats_of(response_format: Any) -> Iterator[_Format]:
    """Yield the response formats of an agent: one for each schema in its `response_format`."""
    if response_format is None:
        return
    strategy: Any = response_format
    is_tool = isinstance(response_format, ToolStrategy)
    if not isinstance(strategy, ToolStrategy):  # Every strategy gives the same names.
        is_strategy = isinstance(strategy, ProviderStrategy | AutoStrategy)
        schema: Any = cast("Any", strategy).schema if is_strategy else strategy
        strategy = ToolStrategy[Any](schema)
    known = cast("ToolStrategy[Any]", strategy)
    for spec in known.schema_specs:
        yield _Format(spec.name, build_validator(spec.schema), known.tool_message_content, is_tool)


def _fits_tool(tool: BaseTool, args: Any) -> bool:
    return is_object(args) and not tool_issues(tool, args)


def _lists_objects(value: Any) -> bool:
    return is_array(value) and all(map(is_object, value))


def _below(path: str, issues: list[Issue]) -> list[Issue]:
    return [cast("Issue", {**issue, "path": f"{path}{issue['path']}"}) for issue in issues]
