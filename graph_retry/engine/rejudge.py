"""Write an attempt's record again from its raw output, by the rules of the steps."""

from __future__ import annotations

import json
from typing import Any, cast

from graph_retry.engine.call import announced
from graph_retry.engine.check import hold, read_raw
from graph_retry.engine.plan import Plan
from graph_retry.engine.relaxed import settle_for_less
from graph_retry.engine.state import fresh_loop
from graph_retry.failures import failure_of
from graph_retry.records import Attempt, Failure

_JUDGED = ("status", "failure", "issues", "repaired", "repairs", "lossless", "parsed", "degraded")


def judged_again(before: list[Attempt], record: Attempt, plan: Plan[Any]) -> tuple[Attempt, Any]:
    """Write an attempt's record again from its raw output, and return the accepted value."""
    raw, validator = record["raw"], plan.validator
    failure = _failure_of_call(record, plan)
    if failure is not None:
        kept = {"status": "failed", "failure": failure}
        return cast("Attempt", {**record, **kept}), None
    now = cast("Attempt", {**record, "parsed": None, "degraded": False, "issues": []})
    if validator is None:
        none: Any = {"status": "succeeded", "failure": None, "repairs": [], "repaired": None}
        return cast("Attempt", {**now, **none, "lossless": None}), (raw or {}).get("value")
    now.update(cast("Attempt", read_raw(now, validator, plan.settings)))
    output: Any = None
    if now["failure"] is None:
        update, checked = hold([*before, now], validator)
        now.update(cast("Attempt", update))
        output = checked.jsonable
    now["status"] = "failed" if now["failure"] else "succeeded"
    # Whether a looser output was settled for depends on what else could be tried: only if it was.
    if record["degraded"]:
        now["degraded"] = settle_for_less(plan, fresh_loop(), now) is not None
    return now, output


def _failure_of_call(record: Attempt, plan: Plan[Any]) -> Failure | None:
    """Return the failure that was known before anything was read: raised, or announced."""
    raw, failure, validator = record["raw"], record["failure"], plan.validator
    if raw is None:
        if failure is None:
            return None
        raised = type(failure["type"], (Exception,), {})(failure["message"])
        kind = plan.settings.classify(raised)
        return {**failure, "kind": failure_of(raised, kind)["kind"]} if kind else failure
    if validator is None:  # what could not be saved was there only then
        return failure if failure and failure["kind"] == "permanent" else None
    if "type" in raw:
        return failure
    refused = failure["message"] if failure and failure["type"] == "Refusal" else None
    return announced(record["finish_reason"], refused, wants_text=validator.wants_text)


def differences(record: Attempt, now: Attempt) -> list[tuple[str, Any, Any]]:
    """List the judged fields that are not as recorded: name, recorded value, value now."""
    pairs = ((field, record.get(field), now.get(field)) for field in _JUDGED)
    return [(field, was, is_) for field, was, is_ in pairs if not same_json(was, is_)]


def same_json(one: Any, other: Any) -> bool:
    """Compare strictly by type, and take NaN for itself."""
    texts = [json.dumps(each, sort_keys=True, default=str) for each in (one, other)]
    return texts[0] == texts[1]
