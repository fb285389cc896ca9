"""Judge recorded attempts again, without the model, by another plan."""

from __future__ import annotations

from typing import Any, cast

from graph_retry._core.loop.asking.hooks import Proposal, propose
from graph_retry._core.loop.check import read_raw, validate_attempt
from graph_retry._core.loop.revise import hooks_may_help
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.receiving import stopped_again
from graph_retry._core.loop.run.step import in_place
from graph_retry._core.output.failures import announced, classified
from graph_retry._core.params.patch import Encoded
from graph_retry._core.state.attempts import is_returned, params_at
from graph_retry.records import Attempt, Failure


async def proposed_again(before: list[Attempt], now: Attempt, plan: Plan[Any]) -> Proposal | None:
    """Ask the hooks about a failed attempt again; None if they revise nothing."""
    if not hooks_may_help(now, plan.settings):
        return None
    then = cast("Attempt", {**now, "decision": None})
    params = cast("Encoded", params_at([*before, now], now["number"]))
    return await propose(plan, params, [*before, then], in_place)


async def judged_again(
    before: list[Attempt], record: Attempt, plan: Plan[Any]
) -> tuple[Attempt, Any]:
    """Judge an attempt's raw output again; return the new record and the valid output."""
    raw, validator = record["raw"], plan.validator
    failure = _failure_of_call(record, plan)
    if failure is not None:
        failed = {"status": "failed", "failure": failure}
        return cast("Attempt", {**record, **failed}), None
    now = cast("Attempt", {**record, "parsed": None, "issues": []})
    if validator is None:
        none: Any = {"status": "succeeded", "failure": None, "repairs": [], "repaired": None}
        return cast("Attempt", {**now, **none, "lossless": None}), (raw or {}).get("value")
    if stopped := stopped_again(record, validator, plan.settings):
        return cast("Attempt", {**now, **stopped, "status": "failed"}), None
    now.update(cast("Attempt", read_raw(now, validator, plan.settings)))
    output: Any = None
    update, checked = await validate_attempt([*before, now], validator)
    now.update(cast("Attempt", update))
    if checked is not None:
        output = checked.jsonable
    now["status"] = "failed" if now["failure"] else "succeeded"
    return now, output


def _failure_of_call(record: Attempt, plan: Plan[Any]) -> Failure | None:
    """Return the failure that was known before the output was read.

    The call raised it, or the provider announced it (such as by a finish reason).
    """
    failure, validator = record["failure"], plan.validator
    if not is_returned(record):
        if failure is None:
            return None
        raised = type(failure["type"], (Exception,), {})(failure["message"])
        kind = classified(raised, plan.settings.classify)
        return {**failure, "kind": kind} if kind else failure
    if validator is None:  # `permanent` marks a result that could not be saved.
        return failure if failure and failure["kind"] == "permanent" else None
    raw = record["raw"] or {}
    if "type" in raw:
        return failure
    refused = failure["message"] if failure and failure["type"] == "Refusal" else None
    is_read = "text" in raw and not validator.wants_text
    return announced(record["finish_reason"], refused, is_read=is_read)
