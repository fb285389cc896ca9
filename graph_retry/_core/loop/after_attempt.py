"""Finish an attempt: report it, and end the call or open a review of the attempt."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

from langgraph.types import Overwrite

from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.ground.functions.signatures import name_of
from graph_retry._core.ground.issues import describe
from graph_retry._core.ground.json import is_number, is_object
from graph_retry._core.ground.logs import warn_once
from graph_retry._core.ground.wording import counted, passed_as
from graph_retry._core.loop.asking.questions import read_value
from graph_retry._core.loop.run.keeping import whole_here
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.settings import Settings
from graph_retry._core.loop.run.step import StepInput, as_task
from graph_retry._core.review.deadline import after, now
from graph_retry._core.state.attempts import stated_confidence, verdict
from graph_retry._core.state.position import (
    ANSWER,
    LOOP,
    REVIEWED,
    Loop,
    OpenReview,
    fresh_review,
    review_id_of,
)
from graph_retry.errors import AttemptsExhausted, CallCancelled, GraphRetryError
from graph_retry.records import Attempt, GateVerdict, shown_record

_LOG = logging.getLogger("graph_retry")


async def open_review(
    given: StepInput, suggested: Mapping[str, Any] | None = None, note: str | None = None
) -> OpenReview:
    """Return the state of a new review of the last attempt."""
    asked_at = now()
    ended = await given.run.ended_reviews("as it asks")
    review: Any = {
        **fresh_review(review_id_of(given.attempts[-1]["idempotency_key"], 1)),
        **(suggested or {}),
        "note": "; ".join(filter(None, (note, ended))) or None,
        "asked_at": asked_at,
        "expires_at": after(asked_at, given.plan.settings.expires_after),
    }
    return cast("OpenReview", review)


async def succeeded(given: StepInput, record: Attempt, output: Any) -> dict[str, Any]:
    """Return the state update after a valid output: the call ends, or a review opens."""
    keys = given.plan.settings.keys
    learned = await finished(given, record)
    if await _is_reviewed(given, record, output):
        asked: Loop = {**given.loop, "next": "review", "review": await open_review(given)}
        return learned | {LOOP: asked, REVIEWED: {"value": output}}
    ended: Loop = {**given.loop, "next": "end"}
    return learned | {LOOP: ended, keys["output"]: output, keys["status"]: "succeeded"}


async def reviewed_later(given: StepInput) -> dict[str, Any]:
    """Open a review of an attempt of an earlier call, without calling the model.

    The earlier call could not ask anybody. `review_later` passed its last attempt to this retry
    node, with the mark `to_review: True` in the record.
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
        "review": await open_review(given),
    }
    may_be_taken = "accept" in settings.allowed_decisions and last["issues"]
    return {
        LOOP: loop,
        ANSWER: None,
        REVIEWED: read_value(record, given.plan.validator) if may_be_taken else None,
        keys["params"]: given.state[keys["params"]],
        # `Overwrite`, because the reducer would keep the mark `to_review` of the same record.
        keys["attempts"]: Overwrite([*given.attempts[:-1], record]),
    }


async def _is_reviewed(given: StepInput, record: Attempt, output: Any) -> bool:
    """Return whether a person must approve this valid output, according to the option `review`.

    The option `review` may be a function. It is called once, in a LangGraph task, and gets the
    whole output, such as a message with tool calls. The record keeps the verdict of a `Gate`.
    """
    settings, validator = given.plan.settings, given.plan.validator
    rule = settings.review
    if not callable(rule):
        return rule == "always"

    shown: Any = {
        **record,
        "raw": {"value": output, **(record["raw"] or {})},
        "params": given.plan.codec.decode(*given.params),
        "output_schema": None if validator is None else validator.schema,
    }

    async def ask() -> bool | GateVerdict:
        with passed_as("review"):
            return await verdict_of(rule, shown)

    said = await as_task(f"{settings.name}:review#{record['number']}", ask)
    if isinstance(said, bool):
        return said
    record["gate"] = said
    return said["ask"]


async def finished(given: StepInput, record: Attempt) -> dict[str, Any]:
    """Report a finished attempt, and return the new lessons as a state update.

    The budget and the option `on_attempt` get the attempt. `on_attempt` is called in a LangGraph
    task, so that a step that runs again does not report twice. If it raises, the error is only
    logged.
    """
    settings, name = given.plan.settings, given.plan.settings.name
    given.run.emit("attempt_finished", record["number"], record, status=record["status"])
    on_attempt = settings.on_attempt
    if settings.budget is not None:
        with passed_as("budget"):
            settings.budget.count(record)
            limit = record["raw"] is not None and settings.budget.unknown(record)
        if limit:
            what = (
                "the budget of `%s` cannot count its %s: the answer came without usage, and counts "
                "as zero; return a LangChain message, the client's response, or a `Completion` "
                "with `usage`"
            )
            warn_once(_LOG, what, name, limit)
    if on_attempt is not None:
        listener = name_of(on_attempt, "on_attempt")

        async def report() -> None:
            with informing(f"`on_attempt` (`{listener}`)", settings.redact):
                await call(on_attempt, shown_record(record))

        await as_task(f"{name}:{listener}#{record['number']}", report)
    if settings.lessons is None:
        return {}
    earlier = [one for one in given.attempts if one["number"] < record["number"]]
    if record["failure"] is None and earlier:
        earlier = await whole_here(earlier)
        return {settings.keys["lessons"]: settings.lessons.learned(name, [*earlier, record])}
    return {settings.keys["lessons"]: settings.lessons.learned(name, [record])}


def without_output(plan: Plan[Any], status: str) -> dict[str, Any]:
    """Return the update that ends a call without an output, and clears an earlier call's output."""
    return {plan.settings.keys["output"]: None, plan.settings.keys["status"]: status}


def ended_error(
    settings: Settings, state: Mapping[str, Any], stopped: str | None
) -> GraphRetryError:
    """Return the error of a call that ended with the status `cancelled` or `exhausted`.

    `stopped` says why automation ended; None if an older version of this library ended the call.
    """
    name, keys, attempts = settings.name, settings.keys, state[settings.keys["attempts"]]
    last, failure = attempts[-1], attempts[-1]["failure"]
    why = f"{failure['type']}: {failure['message']}" if failure else "its output was valid"
    made = counted(len(attempts), "attempt")
    if state[keys["status"]] == "cancelled":
        decision = last["decision"]
        reason = decision.get("message") if decision else None
        said = f": {reason}" if reason else ""
        is_default = decision is not None and decision["author"] == "system"
        whom = "`default_decision`" if is_default else "a reviewer"
        msg = f"`{name}` was cancelled by {whom} after {made}{said} ({why})"
        return CallCancelled(msg, attempts, reason=reason)
    ended = f"Automation ended because {stopped}, or allow" if stopped else "Allow"
    failed = f"`{name}` failed {made} and may not ask anybody; the last failure was"
    msg = f"{failed} {why.rstrip('.')}. {ended} `review`."
    learned = settings.lessons
    lessons = learned.newest(state.get(keys["lessons"]), name, attempts) if learned else []
    return AttemptsExhausted(msg, attempts, lessons=lessons)


async def give_up_step(given: StepInput) -> dict[str, Any]:
    """The step `give_up`: raise the error of a call that ended without an output."""
    raise ended_error(given.plan.settings, given.state, given.loop["stopped"])


async def verdict_of(rule: Any, attempt: Attempt) -> bool | GateVerdict:
    """Call the function of the option `review`, and return whether to ask a person.

    If the function returns a number, a person is asked about an output whose field `confidence` is
    missing or below this number.
    """
    said = await call(rule, attempt)
    if is_number(said) and 0 <= said <= 1:
        return verdict(attempt, said, stated_confidence(attempt))
    if is_object(said) and "ask" in said:
        return cast("GateVerdict", said)
    if isinstance(said, str) or is_number(said) or is_object(said):
        what = f"`review` returned {describe(said)}"
        raise TypeError(f"{what}: return True or False, or a number from 0 to 1")
    return bool(said)
