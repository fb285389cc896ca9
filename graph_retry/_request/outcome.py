"""Turn the result or the error of one request to the model into fields of the attempt's record."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from graph_retry._credentials import without_keys
from graph_retry._langgraph.run_config import current_saver
from graph_retry._output.build import wrap_error
from graph_retry._output.completion import read_result, said_in
from graph_retry._output.failures import announced, failure_of
from graph_retry._output.mistakes import place_of, place_of_bug, tell, tell_bug
from graph_retry._output.providers.langchain import mean_logprob
from graph_retry._plan.plan import Plan
from graph_retry._redact import redacted
from graph_retry._request.stored import store, unsavable
from graph_retry._signatures import name_of
from graph_retry._wording import quoted_with_article
from graph_retry.options import Settings
from graph_retry.records import Attempt, Failure, FailureKind

_LOG = logging.getLogger("graph_retry")


class Outcome(TypedDict):
    """Fields for the record. Without `output=`, also the result as the output, with its types."""

    record: dict[str, Any]
    output: Any
    output_types: dict[str, str]


def outcome_of_error(plan: Plan[Any], record: Attempt, error: Exception) -> Outcome:
    """Return the outcome of a request that raised."""
    settings = plan.settings
    said = said_in(error)
    if said is not None and plan.validator is not None:
        return outcome_of_result(plan, said)
    # The ledger keeps only the error's message, so a traceback can be seen only here.
    if _LOG.isEnabledFor(logging.DEBUG):
        trace = without_keys("".join(traceback.format_exception(error)))
        trace = redacted(trace, settings.redact)
        _LOG.debug("attempt %s of `%s` failed:\n%s", record["number"], settings.name, trace)
    failure = _failure_of(error, settings)
    place = place_of_bug(error, plan.llm_call) if failure["kind"] == "rejected_input" else None
    if place is not None:
        name = name_of(plan.llm_call, "llm_call")
        tell_bug(f"`{name}` (attempt {record['number']})", error, place, settings.redact)
        failure["message"] += f" ({place})"
    # Issues describe the output, so other errors (such as a lost connection) have none.
    issues = wrap_error(error) if failure["kind"].startswith("invalid_") else []
    raw = {"text": said} if isinstance(said, str) else None
    return Outcome(
        record={"failure": failure, "issues": issues, "raw": raw}, output=None, output_types={}
    )


def _failure_of(error: Exception, settings: Settings) -> Failure:
    if isinstance(error, TimeoutError) and not str(error) and settings.timeout is not None:
        error = TimeoutError(f"no result within {settings.timeout:g} s")
    return failure_of(error, settings.classify(error))


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
            # State stores such a number as a text, and validation would take it for a string.
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
    # A `TypeError` here means that the value cannot be saved. Only a change of the code helps, so
    # tell the developer the place of the function.
    if failure is not None and failure["type"] == "TypeError":
        tell(failure["message"], place_of(plan.llm_call), plan.settings.redact)
    return outcome


def _keep(result: Any, outcome: Outcome, made_by: str) -> None:
    """Use the result as the call's output, or record a failure if it cannot be saved."""
    stored = store(result)
    kept = result if stored is None else stored.view["value"]
    unsure = stored is None or isinstance(kept, str | BaseMessage)
    why = unsavable(kept) if unsure else None
    if why is not None and current_saver() is not None:
        # Without this failure, the checkpointer would raise, and a resume would repeat the call.
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
