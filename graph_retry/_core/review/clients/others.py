"""Read the questions of other libraries as reviews, and answer them in their own form.

LangChain's `HumanInTheLoopMiddleware`, Agent Inbox, and `interrupt(value, response_schema=…)` each
have a form of question. `READERS` has a function for each form. An interrupt in any other form is
not a review.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from graph_retry._core.ground.json import digest, is_array, is_object
from graph_retry._core.output.build import build_validator
from graph_retry._core.params.json_params import JsonParams
from graph_retry._core.review.clients.payload import build_payload
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.judge import judge
from graph_retry._core.review.review_record import Question, Refused
from graph_retry.errors import AnswerRefused
from graph_retry.records import APPROVAL

_ORIGINAL = "asked_by_other"
"""The key of a review's value for the other library's own value and schema."""


class Asks(NamedTuple):
    """A question of another library, in the terms of a review.

    name: The name of the tool, or the title of the question.
    params, locked: The params, and the names of those that must not be edited.
    told: The question's text for people.
    allowed: The allowed decisions.
    output: The JSON Schema of a response.
    reply: Converts an accepted decision to the answer that the other library expects.
    given: Converts an answer in the other library's form to an answer to a review.
    """

    name: str
    params: dict[str, Any]
    told: str
    allowed: Sequence[str]
    reply: Callable[[Accepted], Any]
    params_schema: dict[str, Any] | None = None
    locked: tuple[str, ...] = ()
    output: dict[str, Any] = {"type": "string"}  # noqa: RUF012 - it is never changed
    given: Callable[[Any], Any] = lambda answer: answer


def review_value(value: Any, schema: Any, review_id: str, at: str | None) -> dict[str, Any] | None:
    """Return the review's value for another library's question; None if its form is unknown."""
    found = _read(value, schema)
    if found is None:
        return None
    original = {"value": value, "schema": schema}
    return {**build_payload(_question(found, review_id, at)), _ORIGINAL: original}


async def answer_to(asked: Mapping[str, Any], given: Any) -> Any:
    """Check an answer to a question of `review_value`, and return it in the asking library's form.

    Raises:
        AnswerRefused: If the answer cannot be applied.
    """
    original, review_id = asked[_ORIGINAL], str(asked["review_id"])
    found = _read(original["value"], original["schema"])
    assert found is not None  # noqa: S101 - it was read before
    verdict = await judge(found.given(given), _question(found, review_id, asked["asked_at"]))
    if isinstance(verdict, Refused):
        told: Any = {"review_ids": [review_id], "reasons": {review_id: verdict.problem}}
        raise AnswerRefused(verdict.problem, issues=verdict.issues, **told)
    return found.reply(verdict)


def _read(value: Any, schema: Any) -> Asks | None:
    return next((found for read in READERS if (found := read(value, schema)) is not None), None)


def _question(found: Asks, review_id: str, at: str | None) -> Question:
    validator = build_validator(found.output)
    return Question(
        review_id=review_id,
        function_name=found.name,
        attempt=1,
        failure={"kind": "rejected_input", "type": APPROVAL, "message": found.told},
        params=found.params,
        asked_at=at,
        codec=JsonParams(found.params, found.params_schema, why_no_comment="no model is called"),
        locked=found.locked,
        allowed=tuple(found.allowed),
        schema_of_output=found.output,
        check_output=validator.acheck_digits,
    )


def _object(**fields: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with these fields. A field with a default is optional."""
    needed = [name for name, schema in fields.items() if "default" not in schema]
    closed: dict[str, Any] = {"type": "object", "additionalProperties": False}
    return {**closed, "properties": fields, "required": needed}


_TEXT: dict[str, Any] = {"type": "string"}
_DECISIONS: dict[str, dict[str, Any]] = {
    "approve": {"type": {"const": "approve"}},
    "edit": {"type": {"const": "edit"}, "args": {"type": "object"}},
    "reject": {"type": {"const": "reject"}, "message": {**_TEXT, "default": ""}},
    "respond": {"type": {"const": "respond"}, "message": _TEXT},
}


class _ToolCall(NamedTuple):
    """A tool call that waits for a person. `key` is its name, with a number if it is repeated."""

    key: str
    name: str
    args: dict[str, Any]
    told: str
    allowed: Sequence[str]

    def decided(self, kind: str, args: Any = None, message: str | None = None) -> dict[str, Any]:
        """Return a decision in LangChain's form. An edit without a change becomes an approval."""
        if kind == "edit" and args == self.args and "approve" in self.allowed:
            kind = "approve"
        said = {"message": message} if kind in ("reject", "respond") and message else {}
        action = {"edited_action": {"name": self.name, "args": args}} if kind == "edit" else {}
        return {"type": kind, **said, **action}

    def read(self, accepted: Accepted) -> dict[str, Any]:
        """Return an accepted decision about this one tool call in LangChain's form."""
        decision: Any = accepted.decision
        message = decision["output"] if decision["type"] == "respond" else decision.get("message")
        return self.decided(decision["type"], accepted.params, message)

    def as_mapped(self, decision: Any) -> Any:
        """Convert a decision in LangChain's form to one part of a decision about several calls."""
        edited: Any = decision.get("edited_action") if is_object(decision) else None
        if not is_object(edited) or edited.get("name") != self.name:
            return decision
        rest = {key: part for key, part in decision.items() if key != "edited_action"}
        return {**rest, "args": edited.get("args")}

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a decision about this tool call."""
        return {"oneOf": [_object(**_DECISIONS[kind]) for kind in self.allowed]}


def _one_approval(value: Any, schema: Any) -> Asks | None:
    """Read a question of `HumanInTheLoopMiddleware(interrupt_mode="per_call")`."""
    if not is_object(value) or value.get("type") != "tool_approval" or not is_object(schema):
        return None
    definitions: dict[str, Any] = schema.get("$defs", {})
    branches = [_resolved(branch, definitions) for branch in schema.get("oneOf", [schema])]
    by_word = {each["properties"]["type"]["const"]: each["properties"] for each in branches}
    if not by_word.keys() <= _DECISIONS.keys():
        return None
    name, args = value["name"], value["args"]
    call = _ToolCall(name, name, args, value["description"], tuple(by_word))
    params_schema: dict[str, Any] | None = None
    if "edit" in by_word:
        action = _resolved(by_word["edit"]["edited_action"], definitions)
        params_schema = {**_resolved(action["properties"]["args"], definitions)}
        params_schema |= {"$defs": definitions}
    return Asks(name, args, call.told, call.allowed, call.read, params_schema)


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    found: dict[str, Any] = definitions.get(name, schema)
    return found


def _approvals(value: Any, _schema: Any) -> Asks | None:
    """Read a question of `HumanInTheLoopMiddleware` about all calls of a message."""
    if not is_object(value) or value.keys() != {"action_requests", "review_configs"}:
        return None
    requests, configs = value["action_requests"], value["review_configs"]
    if not (is_array(requests) and is_array(configs) and 0 < len(requests) == len(configs)):
        return None
    calls: list[_ToolCall] = []
    for asked, config in zip(cast("Any", requests), cast("Any", configs), strict=True):
        allowed = config["allowed_decisions"]
        if not {*allowed} <= _DECISIONS.keys():
            return None
        name, number = asked["name"], sum(call.name == asked["name"] for call in calls) + 1
        key = name if number == 1 else f"{name} ({number})"
        calls.append(_ToolCall(key, name, asked["args"], asked.get("description", ""), allowed))
    if len(calls) > 1:
        return _several(calls)
    (call,) = calls

    def reply(accepted: Accepted) -> Any:
        return {"decisions": [call.read(accepted)]}

    return Asks(call.name, call.args, call.told, call.allowed, reply)


def _several(calls: Sequence[_ToolCall]) -> Asks:
    """Return one question about several tool calls. A person decides for all or for each."""

    def reply(accepted: Accepted) -> Any:
        decision, args = cast("Any", accepted.decision), accepted.params or {}
        kind, message = decision["type"], decision.get("message")
        if kind != "respond":
            made = [call.decided(kind, args.get(call.key), message) for call in calls]
            return {"decisions": made}
        each = [(call, decision["output"][call.key]) for call in calls]
        return {
            "decisions": [
                call.decided(one["type"], one.get("args"), one.get("message")) for call, one in each
            ]
        }

    def given(answer: Any) -> Any:
        decisions: Any = answer.get("decisions") if is_object(answer) else None
        if not is_array(decisions) or len(decisions) != len(calls):
            return answer
        pairs = zip(calls, decisions, strict=True)
        output = {call.key: call.as_mapped(decision) for call, decision in pairs}
        rest = {key: part for key, part in answer.items() if key != "decisions"}
        return {**rest, "type": "respond", "output": output}

    every = [kind for kind in ("approve", "reject") if all(kind in one.allowed for one in calls)]
    changes = any("edit" in call.allowed for call in calls)
    if changes and all({"approve", "edit"} & {*call.allowed} for call in calls):
        every.append("edit")
    return Asks(
        ", ".join(call.key for call in calls),
        {call.key: call.args for call in calls},
        "\n\n".join(call.told for call in calls),
        [*every, "respond"],
        reply,
        _object(**{call.key: {"type": "object"} for call in calls}),
        tuple(call.key for call in calls if "edit" not in call.allowed),
        _object(**{call.key: call.schema for call in calls}),
        given,
    )


_INBOX = {"accept": "approve", "edit": "edit", "respond": "respond", "ignore": "reject"}
"""The decision for each `allow_…` key in a question of Agent Inbox."""


def _of_agent_inbox(value: Any, _schema: Any) -> Asks | None:
    """Read a `HumanInterrupt` of Agent Inbox, alone or as the only item of a list."""
    asked: Any = value[0] if is_array(value) and len(value) == 1 else value
    if not is_object(asked) or not {"action_request", "config"} <= asked.keys():
        return None
    action, config = asked["action_request"], asked["config"]
    allowed = [word for key, word in _INBOX.items() if config.get(f"allow_{key}")]
    if not allowed or not is_object(action) or not is_object(action.get("args")):
        return None

    def reply(accepted: Accepted) -> Any:
        decision: Any = accepted.decision
        given: dict[str, Any] = {
            "approve": {"type": "accept", "args": action},
            "edit": {"type": "edit", "args": {**action, "args": accepted.params}},
            "respond": {"type": "response", "args": decision.get("output")},
            "reject": {"type": "ignore", "args": None},
        }
        return [given[decision["type"]]]

    told = str(asked.get("description") or f"`{action['action']}` waits for a person")
    return Asks(str(action["action"]), action["args"], told, allowed, reply)


def _question_with_schema(value: Any, schema: Any) -> Asks | None:
    """Read the `interrupt(value, response_schema=…)` of a node. The response is its result."""
    if not is_object(schema):
        return None
    name = str(schema.get("title") or f"question {digest(schema)[:6]}")
    told = value if isinstance(value, str) else f"a person must answer in the form of `{name}`"
    params: dict[str, Any] = value if is_object(value) else {"question": value}

    def reply(accepted: Accepted) -> Any:
        return cast("Any", accepted.decision)["output"]

    return Asks(name, params, told, ["respond"], reply, output=schema)


READERS: list[Callable[[Any, Any], Asks | None]] = [
    _one_approval,
    _approvals,
    _of_agent_inbox,
    _question_with_schema,
]
"""A function for each form of question. It gets an interrupt's value and `response_schema`."""
