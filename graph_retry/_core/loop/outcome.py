"""Turn the result or the error of a model call into fields of the attempt's record."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph_retry._core.ground.credentials import without_keys
from graph_retry._core.ground.functions.calling import (
    declared_result,
    forgotten,
    returns_nothing,
)
from graph_retry._core.ground.functions.kinds import misfit
from graph_retry._core.ground.functions.signatures import name_of
from graph_retry._core.ground.issues import attempt, excerpt, json_problem, wrap_error
from graph_retry._core.ground.json import as_text
from graph_retry._core.ground.logs import warn_once
from graph_retry._core.ground.redact import redacted_in_logs
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.langgraph.run_config import current_saver
from graph_retry._core.loop.run.heard import Heard
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.settings import Settings
from graph_retry._core.output.carried import is_reading_error, is_returned, said_in
from graph_retry._core.output.completion import Reading, read_result
from graph_retry._core.output.failures import announced, classified, failure_of
from graph_retry._core.output.mistakes import (
    place_of,
    place_of_bug,
    tell,
    tell_bug,
)
from graph_retry._core.output.providers.langchain import mean_logprob
from graph_retry._core.output.validator import Validator, format_issues
from graph_retry._core.params.patch import Encoded
from graph_retry._core.params.tagged_json import TYPES, Writer, differences, restore
from graph_retry.records import Attempt, Failure, FailureKind, Issue

_LOG = logging.getLogger("graph_retry")

_MAX_EARLIER, _MAX_EARLIER_TEXT = 20, 4_000
"""The most earlier answers of one request in the ledger, and the most characters of each."""


class Outcome(TypedDict):
    """The outcome of one model call.

    record: New fields for the attempt's record.
    output, output_types: Without `output=`, the output as JSON, and its Python types.
    """

    record: dict[str, Any]
    output: Any
    output_types: dict[str, str]


def outcome_of_error(
    plan: Plan[Any], record: Attempt, error: Exception, heard: Heard, received: Any = None
) -> Outcome:
    """Return the outcome of a model call that raised an error.

    Args:
        plan: The plan of the call.
        record: The record of the attempt.
        error: The error.
        heard: The answers of LangChain's models during the call.
        received: The part of a streamed answer that arrived; None if nothing arrived.
    """
    settings, answer = plan.settings, heard.last
    failure, said = _failure_of(error, settings), said_in(error)
    # An error may quote a text that is not in the model's answer. Such a text has another source,
    # unless a LangChain parser raised the error (`llm_output`).
    is_other = isinstance(said, str) and answer is not None and said.strip() not in answer.text
    if answer is not None and (not is_other or not answer.text or hasattr(error, "llm_output")):
        said = answer
    if said is not None and _may_be_read(plan, error, failure["kind"], said):
        return outcome_of_result(plan, said, heard)
    is_invalid = failure["kind"].startswith("invalid_")
    told = None if said is None else read_result(said, plan.validator)
    spoken = told and announced(told.finish_reason, told.refusal, is_read=False)
    if spoken is not None and (is_invalid or failure.pop("is_unknown", False)):
        failure["kind"] = spoken["kind"]
    # The ledger keeps only the error's message, so a traceback can be seen only here.
    if _LOG.isEnabledFor(logging.DEBUG):
        trace = without_keys("".join(traceback.format_exception(error)))
        shown = redacted_in_logs(trace, settings.redact)
        _LOG.debug("attempt %s of `%s` failed:\n%s", record["number"], settings.name, shown)
    place = place_of_bug(error, plan.llm_call) if failure["kind"] == "rejected_input" else None
    if place is not None:
        name = name_of(plan.llm_call, "llm_call")
        tell_bug(f"`{name}` (attempt {record['number']})", error, place, settings.redact)
        failure["message"] += f" ({place})"
    # Issues describe the output, so other errors (such as a lost connection) have none.
    issues = wrap_error(error) if is_invalid else []
    fields: dict[str, Any] = {"failure": failure, "issues": issues, "usage": heard.usage}
    reading = read_result(received, plan.validator)
    part = reading.value if reading.text is None else reading.text
    if told is not None:
        fields |= {"raw": {"text": _words_of(told)}, "usage": heard.usage or told.usage}
        fields["finish_reason"] = told.finish_reason
    elif part:
        fields |= {"raw": {"received": as_text(part)}, "usage": reading.usage or heard.usage}
    return Outcome(record=fields, output=None, output_types={})


def _may_be_read(plan: Plan[Any], error: Exception, kind: FailureKind, said: Any) -> bool:
    """Return whether the model's answer counts as the result although the user's function raised.

    `said` is the model's answer, for example the text that a chain's parser could not parse.
    """
    if plan.validator is None or not kind.startswith("invalid_"):
        # A provider's client raises if an answer was cut off. The error has the completion.
        return plan.validator is not None and not isinstance(said, str | AIMessage)
    return is_reading_error(error, plan.validator.name) and is_returned(error, plan.llm_call)


def _failure_of(error: Exception, settings: Settings) -> Failure:
    kind, mistakes = attempt(classified, error, settings.classify)
    if not mistakes:
        return failure_of(error, kind)
    # The request is paid and not saved yet. An exception here would lose it, so the mistake is a
    # part of the failure, which no hook may retry.
    failure, mistake = failure_of(error, "permanent"), mistakes[0]["message"]
    tell(f"`classify` has a mistake: {mistake}", place_of(settings.classify), settings.redact)
    return {**failure, "message": f"{failure['message']} (`classify` failed: {mistake})"}


def outcome_of_result(plan: Plan[Any], result: Any, heard: Heard) -> Outcome:
    """Return the outcome of a model call that returned `result`."""
    answer, validator = heard.answer_of(result), plan.validator
    if result is None and answer is not None and validator is not None:
        # A chain gives None if the model answered in words in place of calling the wanted tool.
        is_chains = "null" not in validator.kinds and not returns_nothing(plan.llm_call)
        result = answer if is_chains else result
    reading = read_result(result, validator)
    is_text = reading.text is not None
    if answer is not None:
        reading, is_text = _with_answer(reading, read_result(answer, validator), heard)
    record: dict[str, Any] = {"usage": reading.usage, "finish_reason": reading.finish_reason}
    if (logprob := mean_logprob(result)) is not None:
        record["logprob"] = logprob
    outcome = Outcome(record=record, output=None, output_types={})
    if validator is None:
        _keep(result, outcome, name_of(plan.llm_call, "llm_call"))
        _tell_unlike(plan, result)
    else:
        record["failure"] = announced(
            reading.finish_reason, reading.refusal, is_read=is_text and not validator.wants_text
        )
    record["raw"] = _raw_of(plan, reading, type(result).__name__, record)
    if reading.reasoning is not None:
        record["raw"]["reasoning"] = reading.reasoning
    if earlier := [read_result(each, validator) for each in heard.answers[:-1][-_MAX_EARLIER:]]:
        record["raw"]["earlier"] = [excerpt(_words_of(each), _MAX_EARLIER_TEXT) for each in earlier]
    failure = record.get("failure")
    # A `TypeError` here means that the value cannot be saved. Only the developer can help, by a
    # change of the function. Therefore the message names the place of the function.
    if failure is not None and failure["type"] == "TypeError":
        tell(failure["message"], place_of(plan.llm_call), plan.settings.redact)
    return outcome


def check_returns(plan: Plan[Any]) -> None:
    """Check whether `llm_call` ever returns a value. Without `output=`, None would be a success.

    Raises:
        TypeError: If the function computes a value, and never returns one.
    """
    if plan.is_node:
        return
    name = name_of(plan.llm_call, "llm_call")
    if (line := forgotten(plan.llm_call)) is not None:
        raise TypeError(f"`{name}` never returns what it computes in {line}: add `return`.")
    is_meant = declared_result(plan.llm_call) is type(None)
    if plan.validator is None and not is_meant and returns_nothing(plan.llm_call):
        what = "`%s` returns no value, so its output is always None: add `return`, or declare "
        warn_once(_LOG, f"{what}that it returns None (`-> None`)", name)


def _tell_unlike(plan: Plan[Any], result: Any) -> None:
    """Log a warning if a result does not fit the return annotation of the user's function."""
    declared = declared_result(plan.llm_call)
    if (wrong := misfit(result, declared, "result")) is not None:
        name = name_of(plan.llm_call, "llm_call")
        came = quoted_with_article(type(wrong.value).__name__)
        what = f"`{name}` declares that it returns {wrong.wanted}, and its {wrong.place} is {came}"
        tell(f"{what}: give `output=` to have it validated", place_of(plan.llm_call))


def _raw_of(plan: Plan[Any], reading: Reading, came: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return the record's field `raw`. If it cannot be validated, add a failure to `record`."""
    if reading.text is not None:
        return {"text": reading.text}
    value = store(reading.value)
    if value is None:
        if plan.validator is not None:
            message = (
                f"`{name_of(plan.llm_call, 'llm_call')}` returned {quoted_with_article(came)}, "
                "which has no JSON form to validate"
            )
            record["failure"] = _failure("invalid_schema", "TypeError", message)
        return {"type": came}
    spelled = [path for path, tag in value.types.items() if tag in ("float", "int")]
    if spelled and plan.validator is not None:
        # State stores NaN and large integers as text, and validation would read a string.
        message = (
            f"the call returned a number at `{spelled[0].removeprefix('/value') or '/'}` that "
            "JSON cannot hold: it has no NaN or infinity, and integers of 64 bits here"
        )
        record["failure"] = _failure("invalid_schema", "ValueError", message)
    return {"value": value.view["value"]}


def _words_of(reading: Reading) -> str:
    return reading.text if reading.text is not None else as_text(reading.value)


def _with_answer(reading: Reading, said: Reading, heard: Heard) -> tuple[Reading, bool]:
    """Add the usage, stop reason and reasoning of the model's answer `said` to a function's result.

    Also return whether the result is a text or the answer is JSON.
    """
    is_other = reading.text is not None and reading.text.strip() != (said.text or "").strip()
    # The function itself made any other text, so a cut-off of the answer says nothing about it.
    ends = None if is_other else said.finish_reason
    usage = reading.usage if reading.usage and len(heard.answers) == 1 else heard.usage
    with_usage = reading._replace(usage=usage or reading.usage)
    full = with_usage._replace(
        finish_reason=reading.finish_reason or ends,
        reasoning=reading.reasoning or said.reasoning,
        refusal=reading.refusal,
    )
    # A chain's parser completes a cut-off text. So a value does not show a complete answer.
    return full, reading.text is not None or _is_json(said.text)


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except (ValueError, RecursionError):
        return False
    return True


def needs_repair(record: Attempt, validator: Validator | None, settings: Settings) -> bool:
    """Return whether the step `repair` must read the text of an attempt.

    An object or list in strict JSON needs no repair, which saves a checkpoint.
    """
    text, function = (record["raw"] or {}).get("text"), settings.repair[1]
    if text is None or validator is None or validator.wants_text:
        return False
    try:
        is_read = function is None and settings.format is None
        return not is_read or not isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return True


def _keep(result: Any, outcome: Outcome, made_by: str) -> None:
    """Keep a result as the output of the call. If it cannot be saved, record a failure instead."""
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
    """Encode a value as `{"value": JSON}` with its Python types; None if this would lose data.

    LangChain messages stay as they are, because LangGraph's serializer can store them.
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
    """Rebuild a value that `store` has encoded.

    Raises:
        ValueError: If the value was edited in state, or if the module of its class is not imported.
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
    """Return the type of a tag, which is a key of `TYPES` or has the form `module:Class`."""
    module, _, path = tag.partition(":")
    # `getattr` would call a module's `__getattr__`, and that may import code that state names.
    cls: Any = sys.modules.get(module)
    for name in path.split("."):
        cls = getattr(cls, "__dict__", {}).get(name)
    if isinstance(cls, type):
        known = cast("type[Any]", cls)
        return known if issubclass(known, BaseModel | Enum) or is_dataclass(known) else None
    return TYPES.get(tag)
