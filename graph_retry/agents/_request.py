"""Convert the request of an agent's model call to params that a person can edit, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, cast

from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel, ConfigDict, Field, create_model

from graph_retry.calls import heard_now, running_task
from graph_retry.plugins import digest, is_array

EARLIER = "earlier_messages"
"""The params field with the number of earlier messages; missing if there are none."""

_ROLES = {"human": "user", "ai": "assistant"}


class ModelParams(BaseModel):
    """The parts of an agent's model call that hooks and people may change.

    `messages` are the last messages of the conversation, without the system prompt.
    `earlier_messages` is the number of messages before them, which the model gets unchanged.
    """

    model_config = ConfigDict(protected_namespaces=())

    model: str
    system_prompt: str | None
    messages: list[dict[str, Any]]
    settings: dict[str, Any]


class RequestChangedError(GraphBubbleUp):
    """The error for inner middleware that changes what a person or a hook has set in a request.

    This error is a `GraphBubbleUp`, so that no middleware takes it for a failure of the model.
    """

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


@dataclass
class Sending:
    """The request of one attempt: as it was given, as a person saw it, and as it was sent.

    given: The request before the params are applied.
    models: The chat models by name.
    asked: The request with the params applied. Inner middleware gets a copy of it.
    used: The request whose messages were read last. The model gets this request.
    carried: Whether a request with the person's changes has been sent.
    """

    given: ModelRequest[Any]
    models: Mapping[str, BaseChatModel]
    asked: ModelRequest[Any] | None = None
    used: AttemptRequest | None = None
    carried: bool = False

    def check(self, sent: Sequence[BaseMessage]) -> None:
        """Compare a request with the request that a person saw, just before the model call.

        `sent` has the messages of the model call. A call that middleware makes for a purpose of its
        own ends in another message, and is not checked.

        Raises:
            RequestChangedError: If the request lacks the change of a person or a hook. After the
                change was sent once, a fallback may send another request.
        """
        asked, used = self.asked, self.used
        if asked is None or used is None or not _ends_alike(sent, used.messages):
            return
        if not self.carried:
            for field in _lost(self.given, asked, used):
                raise RequestChangedError(field)
            self.carried = True
        if (heard := heard_now()) is not None:
            changes = self._changes(asked, used)
            heard.sent = {"sent": changes} if changes else {}

    def _changes(self, asked: ModelRequest[Any], used: ModelRequest[Any]) -> dict[str, Any]:
        before, after = (_described(each, self.models) for each in (asked, used))
        changes = {key: value for key, value in after.items() if before[key] != value}
        shown, sent = ([*map(as_params, each.messages)] for each in (asked, used))
        if shown != sent:
            changes["messages"] = [message for message in sent if message not in shown]
            changes["messages_left_out"] = sum(message not in sent for message in shown)
        return changes

    @property
    def added_tools(self) -> list[str]:
        """The names of tools that inner middleware has added to the request."""
        known = {*_tool_names(self.given)}
        return [] if self.used is None else sorted({*_tool_names(self.used)} - known)


def _ends_alike(*lists: Sequence[BaseMessage]) -> bool:
    ends = [(each[-1].type, each[-1].id, str(each[-1].text)) for each in lists if each]
    return ends[:1] == ends[1:] or not lists[1]


class AttemptRequest(ModelRequest[Any]):
    """The request of one attempt. Inner middleware may change it before it is sent."""

    def __getattribute__(self, name: str) -> Any:
        """Record that this request's messages are read. The model gets the last request read."""
        value = super().__getattribute__(name)
        if name == "messages" and (sending := vars(self).get("_sending")) is not None:
            sending.used = self
        return value

    def bound_to(self, sending: Sending) -> AttemptRequest:
        """Record in `sending` when this request, or a changed copy of it, is read."""
        object.__setattr__(self, "_sending", sending)
        return self

    def override(self, **overrides: Any) -> AttemptRequest:
        """Return a changed copy of the request, which is recorded in the same `Sending`."""
        changed = cast("AttemptRequest", super().override(**overrides))
        return changed.bound_to(vars(self)["_sending"])


def _lost(
    given: ModelRequest[Any], asked: ModelRequest[Any], used: ModelRequest[Any]
) -> Iterator[str]:
    """Yield each field that `asked` changes in `given`, if `used` does not have the change."""
    if used.model is not asked.model is not given.model:
        yield "model"
    for name, value in asked.model_settings.items():
        sent = used.model_settings.get(name, ...)
        if value not in (sent, given.model_settings.get(name, ...)):
            yield "settings"
    before, wanted, prompt = (each.system_prompt or "" for each in (given, asked, used))
    if wanted != before and (wanted not in prompt or (not wanted and before in prompt)):
        yield "system_prompt"
    known, shown, sent = ([*map(as_params, each.messages)] for each in (given, asked, used))
    if shown != known:
        changed = [message for message in shown if message not in known]
        is_kept = all(any(_carries(each, message) for each in sent) for message in changed)
        is_gone = not any(message in sent for message in known if message not in shown)
        kept = [message for message in sent if message in shown]
        if not (is_kept and is_gone and kept == [each for each in shown if each in sent]):
            yield "messages"


def _carries(sent: dict[str, Any], message: dict[str, Any]) -> bool:
    """Return whether `sent` has all texts of `message`, and is equal apart from its content."""
    is_same = {**sent, "content": None} == {**message, "content": None}
    whole = "\n".join(_texts(sent))
    return sent == message or (is_same and all(text in whole for text in _texts(message)))


def _texts(message: dict[str, Any]) -> list[str]:
    content: Any = message["content"]
    blocks = content if is_array(content) else [content]
    return [each if isinstance(each, str) else str(each.get("text", "")) for each in blocks]


def _described(request: ModelRequest[Any], models: Mapping[str, BaseChatModel]) -> dict[str, Any]:
    settings = json.loads(json.dumps(request.model_settings, default=str))
    return {
        "model": name_of_model(request.model, models),
        "system_prompt": request.system_prompt,
        "settings": settings,
        "tools": _tool_names(request),
        "tool_choice": json.loads(json.dumps(request.tool_choice, default=str)),
    }


def _tool_names(request: ModelRequest[Any]) -> list[str]:
    names: list[str] = []
    for tool in request.tools:
        given: Any = tool
        names.append(str(given.get("name") if isinstance(tool, dict) else given.name))
    return names


def key_of(request: ModelRequest[Any], params: ModelParams) -> str:
    """Return a key that identifies a model call of an agent.

    The key is the call's place in the conversation, because the prompt may differ when the node
    runs again. If middleware makes several calls at one place, each further key has a hash of the
    difference from the first request.
    """
    place = place_of(request)
    execution = running_task()
    if execution is None:
        return place
    asked = {**params.model_dump(), **_described(request, {}), "model": params.model}
    first = execution.requests.setdefault(place, asked)
    changed = {key: value for key, value in asked.items() if first.get(key, ...) != value}
    return f"{place} {digest(changed)}" if changed else place


def place_of(request: ModelRequest[Any]) -> str:
    """Return the place of a model call: the id of the last message in the agent's state.

    This id stays the same when the node runs again, although the prompt may change.
    """
    messages = request.state["messages"]
    return str(messages[-1].id) if messages else "start"


def params_of(
    request: ModelRequest[Any], models: Mapping[str, BaseChatModel], last: int
) -> ModelParams:
    """Return the params of a request. A person may change its model to one of `models`."""
    name = name_of_model(request.model, models)
    begin = _begin(request, last)
    return _params_type((name, *sorted({*models} - {name})), begin)(
        model=name,
        system_prompt=request.system_prompt,
        messages=[as_params(message) for message in request.messages[begin:]],
        settings=request.model_settings,
    )


def sent_dicts(request: ModelRequest[Any], view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all messages of a request as JSON: the earlier messages, then those of `view`."""
    earlier = request.messages[: view.get(EARLIER, 0)]
    return [*map(as_params, earlier), *view["messages"]]


def orphans_in(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the positions of tool results that belong to no earlier tool call."""
    open_calls: list[Any] = []
    found: list[int] = []
    for at, message in enumerate(messages):
        open_calls += [call.get("id") for call in message.get("tool_calls") or ()]
        if message.get("role") == "tool":
            if (known_as := message.get("tool_call_id")) in open_calls:
                open_calls.remove(known_as)
            else:
                found.append(at)
    return found


def requested(sending: Sending, params: ModelParams) -> AttemptRequest:
    """Return the request of an attempt: the given request with the params applied."""
    request, models = sending.given, sending.models
    # Unchanged messages stay the same objects, because params lack their providers' metadata.
    known = {_spelled(as_params(message)): message for message in request.messages}
    messages: list[AnyMessage] = []
    for shown in params.messages:
        same = known.get(_spelled(shown))
        messages += [same] if same else cast("list[AnyMessage]", convert_to_messages([shown]))
    earlier = request.messages[: getattr(params, EARLIER, 0)]
    system = request.system_message
    if params.system_prompt != request.system_prompt:
        system = None if params.system_prompt is None else SystemMessage(params.system_prompt)
    is_own = params.model == name_of_model(request.model, models)
    changed = request.override(
        model=request.model if is_own else models[params.model],
        system_message=system,
        messages=[*earlier, *messages],
        model_settings=params.settings,
    )
    # Inner middleware may also change its request in place, so it gets lists of its own.
    own = changed.override(messages=[*changed.messages], model_settings={**changed.model_settings})
    kept = {field.name: getattr(own, field.name) for field in fields(own)}
    sending.asked = changed
    if (heard := heard_now()) is not None:
        heard.before_model.append(sending.check)
    return AttemptRequest(**kept).bound_to(sending)


def name_of_model(model: BaseChatModel, models: Mapping[str, BaseChatModel]) -> str:
    """Return the name of a model in params: its key in `models`, or its provider's name."""
    given = next((name for name, known in models.items() if known is model), None)
    own = getattr(model, "model_name", None) or getattr(model, "model", None)
    return given or (own if isinstance(own, str) else type(model).__name__)


def as_params(message: BaseMessage) -> dict[str, Any]:
    """Return a message as JSON for a person, without the metadata of its provider."""
    shown: dict[str, Any] = {"role": _ROLES.get(message.type, message.type)}
    shown["content"] = cast("Any", message.content)
    if isinstance(message, AIMessage) and message.tool_calls:
        shown["tool_calls"] = [
            {"name": call["name"], "args": call["args"], "id": call["id"]}
            for call in message.tool_calls
        ]
    if isinstance(message, ToolMessage):
        shown["tool_call_id"] = message.tool_call_id
    if message.id is not None:
        shown["id"] = message.id
    return shown


def _begin(request: ModelRequest[Any], last: int) -> int:
    """Return the index of the first message to show. All tool results without a call are shown."""
    wrong = orphans_in([*map(as_params, request.messages)])
    return min([max(len(request.messages) - last, 0), *wrong])


def _spelled(message: Mapping[str, Any]) -> str:
    return json.dumps(message, sort_keys=True, default=str)


@cache
def _params_type(names: tuple[str, ...], earlier: int) -> type[ModelParams]:
    kind: Any = Literal[names]
    more: dict[str, Any] = {EARLIER: (int, Field(earlier, ge=0, le=earlier))} if earlier else {}
    return create_model("ModelParams", __base__=ModelParams, model=(kind, ...), **more)
