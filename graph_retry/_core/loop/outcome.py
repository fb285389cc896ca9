"""The outcome of one request to the model: the record's fields, and the result as plain JSON."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph_retry._core.ground.credentials import without_keys
from graph_retry._core.ground.functions.signatures import name_of
from graph_retry._core.ground.issues import attempt, json_problem
from graph_retry._core.ground.redact import redacted_in_logs
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.langgraph.run_config import current_saver
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.output.build import wrap_error
from graph_retry._core.output.completion import read_result, said_in
from graph_retry._core.output.failures import announced, classified, failure_of
from graph_retry._core.output.mistakes import place_of, place_of_bug, tell, tell_bug
from graph_retry._core.output.providers.langchain import mean_logprob
from graph_retry._core.output.validator import Validator, format_issues
from graph_retry._core.params.patch import Encoded
from graph_retry._core.params.tagged_json import TYPES, Writer, differences, restore
from graph_retry.options import Settings
from graph_retry.records import Attempt, Failure, FailureKind, Issue

_LOG = logging.getLogger("graph_retry")


class Outcome(TypedDict):
    """Fields for the record, and, without `output=`, the call's output with its Python types."""

    record: dict[str, Any]
    output: Any
    output_types: dict[str, str]


def outcome_of_error(
    plan: Plan[Any], record: Attempt, error: Exception, received: Any = None
) -> Outcome:
    """Return the outcome of a request that raised; `received` is the part of its stream."""
    settings = plan.settings
    said = said_in(error)
    if said is not None and plan.validator is not None:
        return outcome_of_result(plan, said)
    # The ledger keeps only the error's message, so a traceback can be seen only here.
    if _LOG.isEnabledFor(logging.DEBUG):
        trace = without_keys("".join(traceback.format_exception(error)))
        shown = redacted_in_logs(trace, settings.redact)
        _LOG.debug("attempt %s of `%s` failed:\n%s", record["number"], settings.name, shown)
    failure = _failure_of(error, settings)
    place = place_of_bug(error, plan.llm_call) if failure["kind"] == "rejected_input" else None
    if place is not None:
        name = name_of(plan.llm_call, "llm_call")
        tell_bug(f"`{name}` (attempt {record['number']})", error, place, settings.redact)
        failure["message"] += f" ({place})"
    # Issues describe the output, so other errors (such as a lost connection) have none.
    issues = wrap_error(error) if failure["kind"].startswith("invalid_") else []
    fields: dict[str, Any] = {"failure": failure, "issues": issues}
    reading = read_result(received, plan.validator)
    part = reading.value if reading.text is None else reading.text
    if isinstance(said, str):
        fields["raw"] = {"text": said}
    elif part:
        text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, default=str)
        fields |= {"raw": {"received": text}, "usage": reading.usage}
    return Outcome(record=fields, output=None, output_types={})


def _failure_of(error: Exception, settings: Settings) -> Failure:
    kind, mistakes = attempt(classified, error, settings.classify)
    if not mistakes:
        return failure_of(error, kind)
    # The request is paid and not saved yet. An exception here would lose it, so the mistake is a
    # part of the failure, which no hook may retry.
    failure, mistake = failure_of(error, "permanent"), mistakes[0]["message"]
    tell(f"`classify` has a mistake: {mistake}", place_of(settings.classify), settings.redact)
    return {**failure, "message": f"{failure['message']} (`classify` failed: {mistake})"}


def outcome_of_result(plan: Plan[Any], result: Any) -> Outcome:
    """Return the outcome of a request that returned."""
    reading = read_result(result, plan.validator)
    record: dict[str, Any] = {"usage": reading.usage, "finish_reason": reading.finish_reason}
    if (logprob := mean_logprob(result)) is not None:
        record["logprob"] = logprob
    outcome = Outcome(record=record, output=None, output_types={})
    came, name = type(result).__name__, name_of(plan.llm_call, "llm_call")
    if plan.validator is None:
        _keep(result, outcome, name)
    else:
        record["failure"] = announced(
            reading.finish_reason,
            reading.refusal,
            is_read=reading.text is not None and not plan.validator.wants_text,
        )
    value = None if reading.text is not None else store(reading.value)
    if reading.text is not None:
        record["raw"] = {"text": reading.text}
    elif value is not None:
        record["raw"] = {"value": value.view["value"]}
        spelled = [path for path, tag in value.types.items() if tag in ("float", "int")]
        if spelled and plan.validator is not None:
            # State stores NaN and large integers as text, and validation would read a string.
            message = (
                f"the call returned a number at `{spelled[0].removeprefix('/value') or '/'}` that "
                "JSON cannot hold: it has no NaN or infinity, and integers of 64 bits here"
            )
            record["failure"] = _failure("invalid_schema", "ValueError", message)
    else:
        record["raw"] = {"type": came}
        if plan.validator is not None:
            message = (
                f"`{name}` returned {quoted_with_article(came)}, which has no JSON form to validate"
            )
            record["failure"] = _failure("invalid_schema", "TypeError", message)
    if reading.reasoning is not None:
        record["raw"]["reasoning"] = reading.reasoning
    failure = record.get("failure")
    # A `TypeError` here means that the value cannot be saved. Only the developer can help, by a
    # change of the function. Therefore the message names the place of the function.
    if failure is not None and failure["type"] == "TypeError":
        tell(failure["message"], place_of(plan.llm_call), plan.settings.redact)
    return outcome


def needs_repair(record: Attempt, validator: Validator | None, settings: Settings) -> bool:
    """Return whether a text needs the `repair` step; strict JSON skips it, saving a checkpoint."""
    text, function = (record["raw"] or {}).get("text"), settings.repair[1]
    if text is None or validator is None or validator.wants_text:
        return False
    try:
        is_read = function is None and settings.format is None
        return not is_read or not isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return True


def _keep(result: Any, outcome: Outcome, made_by: str) -> None:
    """Use the result as the call's output, or record a failure if it cannot be saved."""
    stored = store(result)
    kept = result if stored is None else stored.view["value"]
    unsure = stored is None or isinstance(kept, str | BaseMessage)
    why = unsavable(kept) if unsure else None
    if why is not None and current_saver() is not None:
        # If this were not a failure, the checkpointer would raise, and a resume would repeat the
        # call.
        came = quoted_with_article(type(result).__name__)
        message = (
            f"`{made_by}` returned {came} that cannot be saved ({why}): "
            "return text, a LangChain message, a `Completion`, JSON or another value that "
            "LangGraph's serializer stores; with `output=` only the text or JSON is kept"
        )
        outcome["record"]["failure"] = _failure("permanent", "TypeError", message)
    else:
        outcome["output"] = kept
        outcome["output_types"] = {} if stored is None else stored.types


def _failure(kind: FailureKind, type_: str, message: str) -> Failure:
    return {"kind": kind, "type": type_, "message": message}


def store(value: Any) -> Encoded | None:
    """Encode a value as `{"value": JSON}`, together with its Python types; None if JSON cannot.

    A LangChain message is not converted, because LangGraph's serializer can store it.
    """
    if isinstance(value, BaseMessage):
        return Encoded({"value": value}, {})
    box = {"value": value}
    try:
        view, types = Writer("output", typed=True).write(box)
        # No type is declared for the output, so the tags must name the classes in the output.
        types = {**Writer("output", typed=True, complete=True).write(box)[1], **types}
        again = restore_value(view["value"], types)
        return None if differences(value, again) else Encoded(view, types)
    except (TypeError, ValueError):
        return None


def unsavable(value: Any) -> str | None:
    """Return why a checkpointer cannot save a value unchanged; None if it can."""
    problem = json_problem(value)
    # LangGraph's serializer would save `?` in place of such a character, and raise nothing.
    if problem and problem["code"] == "string_unicode":
        return problem["message"]
    _, problems = attempt(JsonPlusSerializer().dumps_typed, value)
    return problems[0]["message"].removeprefix("TypeError: ") if problems else None


def restore_value(value: Any, types: dict[str, str]) -> Any:
    """Rebuild a value that `store` wrote.

    Raises:
        ValueError: The value was edited in state, or the module of its class is not imported.
    """
    if not types:
        return value
    problems: list[Issue] = []
    again = restore({"value": value}, types, problems, _type_named)["value"]
    if problems:
        raise ValueError(
            "`output` in graph state is no longer what the call returned; put back what was there, "
            f"or import the class in this process:\n{format_issues(problems)}"
        )
    return again


def _type_named(tag: str) -> type[Any] | None:
    """Return the type for a tag, which is one of `TYPES` or has the form `module:Class`."""
    module, _, path = tag.partition(":")
    # `getattr` would call a module's `__getattr__`, and that may import code that state names.
    cls: Any = sys.modules.get(module)
    for name in path.split("."):
        cls = getattr(cls, "__dict__", {}).get(name)
    if isinstance(cls, type):
        known = cast("type[Any]", cls)
        return known if issubclass(known, BaseModel | Enum) or is_dataclass(known) else None
    return TYPES.get(tag)
