"""Open a review: of a failed attempt, or of a valid output that somebody is to see first."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from langgraph.types import Overwrite

from graph_retry._attempts import parsed_value
from graph_retry._issues import json_problem
from graph_retry._loop.finish import emit, finished, log_review
from graph_retry._loop.hooks import Proposal
from graph_retry._loop.plan import Plan
from graph_retry._loop.step import StepInput
from graph_retry._loop.task import as_task
from graph_retry._loop.transitions import Reviewed, after_success
from graph_retry._output.failures import finish_kind
from graph_retry._output.validator import Validator
from graph_retry._review.deadline import after, now
from graph_retry._state import ANSWER, LOOP, REVIEWED, Loop, OpenReview, fresh_review, review_id_of
from graph_retry.hooks._gate import verdict_of
from graph_retry.options import Settings
from graph_retry.records import Attempt, GateVerdict


def read_value(record: Attempt, validator: Validator | None) -> dict[str, Any] | None:
    """Return the value that was read from an output, for a person to accept although invalid.

    None where it was cut off, or could not be read.
    """
    if finish_kind(record["finish_reason"]) is not None:
        return None
    with suppress(ValueError, RecursionError):  # nested too deeply to be read
        value = parsed_value(record, as_text=validator is not None and validator.wants_text)
        return None if json_problem(value) is not None else {"value": value}
    return None


def open_review(
    settings: Settings, record: Attempt, proposal: Proposal | None = None, note: str | None = None
) -> OpenReview:
    """Return a new question about an attempt, and say in the stream that it is asked."""
    asked_at = now()
    review: OpenReview = {
        **fresh_review(review_id_of(record["idempotency_key"], 1)),
        "note": note,
        "asked_at": asked_at,
        "expires_at": after(asked_at, settings.expires_after),
    }
    if proposal is not None:
        review["suggested"], review["suggested_by"] = proposal.params.view, proposal.author
        review["suggested_types"] = proposal.params.types
        review["noted"] = {
            "alternatives": [each.view for each in proposal.alternatives],
            "types_of_alternatives": [each.types for each in proposal.alternatives],
        }
    emit("review_asked", settings.name, record["number"], review_id=review["review_id"])
    log_review("asked", settings.name, record["number"], review["review_id"])
    return review


async def succeeded(plan: Plan[Any], loop: Loop, record: Attempt, output: Any) -> dict[str, Any]:
    """Return the step after a valid output: the call ends, or it waits for approval."""
    settings, keys = plan.settings, plan.settings.keys
    learned = await finished(plan, record)
    if after_success(review=await _wanted(settings, record)) == "ask":
        review = open_review(settings, record)
        asked: Loop = {**loop, "next": "review", "review": review}
        return learned | {LOOP: asked, REVIEWED: {"value": output}}
    ended: Loop = {**loop, "next": "end"}
    return learned | {LOOP: ended, keys["output"]: output, keys["status"]: "succeeded"}


def reviewed_later(given: StepInput) -> dict[str, Any]:
    """Open a review of the last attempt in a node's input, as `review_later` gives it.

    The call it belongs to ended because nobody could be asked then.
    """
    settings, keys, last = given.plan.settings, given.plan.settings.keys, given.attempts[-1]
    record: Any = {name: known for name, known in last.items() if name != "to_review"}
    loop: Loop = {
        **given.loop,
        "next": "review",
        "types": last["params_types"],
        "author": last["author"],
        "reason": last["reason"],
        "identity": given.loop["identity"] or given.run.identity,
        "task_path": given.loop["task_path"] or given.run.task_path,
        "review": open_review(settings, record),
    }
    may_be_taken = "accept" in settings.allowed_decisions and last["issues"]
    return {
        LOOP: loop,
        ANSWER: None,
        REVIEWED: read_value(record, given.plan.validator) if may_be_taken else None,
        keys["params"]: given.state[keys["params"]],
        keys["attempts"]: Overwrite([*given.attempts[:-1], record]),
    }


async def _wanted(settings: Settings, record: Attempt) -> Reviewed:
    """Return the option `review`; a function is asked about this attempt, once.

    What a gate says is noted in the record.
    """
    rule = settings.review
    if not callable(rule):
        return rule

    async def ask() -> bool | GateVerdict:
        return await verdict_of(rule, record)

    said = await as_task(f"{settings.name}:review#{record['number']}", ask)
    if not isinstance(said, bool):
        record["gate"] = said
        return "always" if said["ask"] else True
    return "always" if said else True
