"""The step `call`: open an attempt, and call the model once.

LangGraph saves the update of a step when the step ends. Therefore this step ends right after the
model call, and only puts the outcome into the record. Later steps read and redact the outcome, and
call the user's functions. If a later step fails, a resumed run continues there, and does not repeat
the paid call.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import ExecutionInfo, get_runtime
from langgraph.types import Overwrite, RetryPolicy

from graph_retry._core.ground.functions.awaiting import MistakeInCodeError, sleep
from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.ground.functions.limits import Limits
from graph_retry._core.ground.functions.signatures import AttemptContext, name_of
from graph_retry._core.ground.issues import cut
from graph_retry._core.ground.json import digest
from graph_retry._core.ground.redact import redacted
from graph_retry._core.ground.wording import passed_as, with_article
from graph_retry._core.langgraph.run_config import has_context
from graph_retry._core.langgraph.seen import Seen
from graph_retry._core.loop.after_attempt import reviewed_later
from graph_retry._core.loop.asking.hooks import warn_of_unused
from graph_retry._core.loop.outcome import (
    Outcome,
    check_returns,
    needs_repair,
    outcome_of_error,
    outcome_of_result,
    unsavable,
)
from graph_retry._core.loop.run.first_checks import check_first
from graph_retry._core.loop.run.heard import Heard
from graph_retry._core.loop.run.keeping import replaced_by, slimmed_here, stubs_again
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.receiving import Reception
from graph_retry._core.loop.run.settings import Settings
from graph_retry._core.loop.run.step import StepInput, read_input
from graph_retry._core.output.failures import BudgetExceededError
from graph_retry._core.output.providers.exceptions import retry_after
from graph_retry._core.output.providers.objects import raise_error_in
from graph_retry._core.params.patch import Encoded
from graph_retry._core.params.prompt import unsealed
from graph_retry._core.state.attempts import added_in, open_attempt
from graph_retry._core.state.position import (
    ANSWER,
    LOOP,
    REVIEWED,
    WRITES,
    Loop,
    fresh_loop,
    loop_of,
    no_sums,
    summed,
)
from graph_retry._core.state.rewinding import continued
from graph_retry._core.state.transitions import goes_on
from graph_retry.records import PEOPLE, Addition, Attempt, author_role

MAX_SUBJECT = 200


async def call_step(given: StepInput) -> dict[str, Any]:
    """Open the record of the next attempt, call the model once, and choose the next step.

    A failure is not raised but recorded. A step that raised would run again on resume, and would
    repeat the paid call.
    """
    run, keys = given.run, given.plan.settings.keys
    # After a fork, only the first step continues from the past state. The first step writes the key
    # `ANSWER`, so a state with this key belongs to a later step.
    past = run.slot.past if ANSWER not in given.state else None
    if past is not None:
        # If the past call had finished this step, the restored state leads to the next step.
        if loop_of(past)["next"] != "call":
            return continued(past, keys["attempts"])
        given = read_input(run, {**given.state, **past}, given.config)
    # An input of `review_later` asks for a review of its last attempt, without a model call.
    if given.attempts and given.attempts[-1].get("to_review"):
        return await reviewed_later(given)
    plan, settings = given.plan, given.plan.settings
    execution = get_runtime().execution_info
    this_try = execution.node_attempt if execution else 1
    opened = await _open(given, execution, this_try, copied=past is not None)
    params, record = opened.params, opened.record
    # The user's function gets a copy, so that a change in place cannot reach state or the ledger.
    limits, heard = Limits(settings.timeout), Heard()
    seen = Seen(run.caller, limits.heard(run.write), given.config, limits.heartbeat)
    copy, reception = plan.codec.decode(*params), Reception(given, record["number"], limits.touch)
    started, error, result = time.perf_counter(), None, None
    with run.trace.model_call(settings, record, params.view, this_try) as ended:
        try:
            _check_budget(settings, record)
            called, arguments = plan.passing.bound(plan.llm_call, copy, _context(limits, record))
            with heard.listening():
                result = await call(
                    called, *arguments, limits=limits, config=seen.config, receiver=reception
                )
            if plan.validator is not None:
                raise_error_in(result)
        # LangGraph's control flow must pass, and so must a mistake that the developer must see.
        except (GraphBubbleUp, MistakeInCodeError):
            raise
        except Exception as raised:  # noqa: BLE001 - whatever the user's function raises is a failure
            outcome = outcome_of_error(plan, record, raised, heard, reception.received)
            error = raised
        else:
            outcome = outcome_of_result(plan, result, heard)
            outcome["record"].update(reception.stopped)
        finally:
            # A sync function that timed out still runs in its thread, and may still read a stream.
            reception.end()
        outcome["record"].update(heard.sent)
        ended(outcome["record"], result)
    for mistake in run.mistakes:
        raise mistake
    if error is not None:
        await _try_again(settings, outcome, this_try, error)
    if run.slot.function is not None:
        run.slot.function.note_changes()
        opened.loop["function"] = run.slot.function.saved()
    tried = {"duration_s": round(time.perf_counter() - started, 6), "tries": this_try}
    outcome["record"].update(tried)
    if plan.codec.changed_in_place(params, copy):
        warnings.warn(
            f"`{name_of(plan.llm_call, 'llm_call')}` changed its params in place, but it got a "
            "copy, so the change is lost: make a new object instead.",
            stacklevel=2,
        )
    return {**_update(given, opened, outcome), **_written(given, seen, outcome)}


def _check_budget(settings: Settings, record: Attempt) -> None:
    """Raise if the budget refuses this request. Requests of a person or an agent are never refused.

    `call_step` records the error as the failure of the attempt. So a review opens, and the user's
    run continues.
    """
    if settings.budget is not None and author_role(record["author"]) not in PEOPLE | {"agent"}:
        with passed_as("budget"):
            refused = settings.budget.refused()
        if refused is not None:
            raise BudgetExceededError(refused)


def _written(given: StepInput, seen: Seen, outcome: Outcome) -> dict[str, Any]:
    """Return the update with what a successful function wrote into the outer graph."""
    writes = [] if outcome["record"].get("failure") else list(seen.writes)
    # A write that cannot be saved, such as one to an untracked channel, is lost with the process.
    given.run.writes[:] = writes
    kept = [[channel, value] for channel, value in writes if unsavable(value) is None]
    return {WRITES: kept} if kept or given.state.get(WRITES) else {}


@dataclass
class _Opened:
    """An attempt whose record exists, before the model is called.

    loop: The loop's own state during the attempt.
    record: The new record.
    params: The params of the attempt.
    stubs: The short records that replace large earlier records in state (see `keeping.py`).
    replaced: The earlier records, if they must overwrite the ledger in state. Otherwise None.
    """

    loop: Loop
    record: Attempt
    params: Encoded
    stubs: list[Attempt]
    replaced: list[Attempt] | None


async def _open(
    given: StepInput, execution: ExecutionInfo | None, this_try: int, *, copied: bool
) -> _Opened:
    """Open an attempt, and do everything before the model call that may fail or take time.

    Args:
        given: The input of the step.
        execution: LangGraph's facts about the run of the step, such as the number of the try.
        this_try: The number of the request within the attempt; the first is 1.
        copied: Whether the state is a copy of the state that the call had before a fork.
    """
    run, plan, settings = given.run, given.plan, given.plan.settings
    loop, attempts, ledger_is_old = _position(given)
    params = plan.codec.load(given.state.get(settings.keys["params"]), loop["types"])
    loop["identity"] = loop["identity"] or run.identity
    loop["task_path"] = loop["task_path"] or run.task_path
    loop["note"] = loop["note"] or run.slot.note
    if run.slot.function is not None:
        loop["function"] = loop["function"] or run.slot.function.saved()
    added = unsealed(params.view, loop["added"])
    if added is None and not ledger_is_old:
        added = added_in(given.attempts, params.view)
    _keep_context(loop, settings.name, run.caller or given.config)
    record = _new_record(given, execution, loop, attempts, params, added or [])
    # A stub names the checkpoint that holds the whole record. No checkpoint of this call holds a
    # record that this step has just copied.
    stubs = await slimmed_here(attempts) if attempts and not copied else []
    if stubs:
        spent_on = settings.budget.spent_on if settings.budget else None
        loop = summed(loop, replaced_by(stubs, attempts), spent_on)
    # With `transient`, LangGraph runs this step for each try. The first try begins the attempt.
    if this_try == 1:
        if record["number"] == 1:
            check_first(given, params)
            warn_of_unused(given.plan)
            check_returns(given.plan)
        run.emit("attempt_started", record["number"])
    replaced = stubs_again(attempts) if copied or ledger_is_old else None
    return _Opened(loop, record, params, stubs, replaced)


def _keep_context(loop: Loop, name: str, config: RunnableConfig) -> None:
    """Refuse a run without LangGraph's `context`, if an earlier run of the call had one.

    Raises:
        MistakeInCodeError: If an earlier attempt had a `context`, and this run has none.
    """
    is_given = has_context(config)
    if loop["has_context"] and not is_given:
        raise MistakeInCodeError(
            f"`{name}` had a `context` in an earlier run, but has none in this run, so nothing "
            "was called. Continue with `resume(graph, config, context=…)` or `invoke(…, "
            "context=…)`: an answer that you gave is kept."
        )
    loop["has_context"] = is_given


def _update(given: StepInput, opened: _Opened, outcome: Outcome) -> dict[str, Any]:
    """Return the state update of the step: the record with the outcome, and the next step.

    This function only combines plain data, because an exception would lose the paid answer.
    """
    plan, state, settings = given.plan, given.state, given.plan.settings
    loop, record, view, keys = opened.loop, opened.record, opened.params.view, settings.keys
    record.update(cast("Attempt", outcome["record"]))
    loop.update({"types": opened.params.types, "output_types": outcome["output_types"]})
    if record["failure"] is not None:
        loop["next"] = "revise"
        # With `redact`, an attempt counts as running until `revise` has redacted its texts.
        record["status"] = "failed" if settings.redact is None else "running"
    else:
        loop["next"] = "repair" if needs_repair(record, plan.validator, settings) else "validate"
    update: dict[str, Any] = {LOOP: loop, ANSWER: None}
    if state.get(keys["params"]) != view:
        update[keys["params"]] = view
    is_output = plan.validator is None and record["failure"] is None
    if is_output or state.get(REVIEWED) is not None:
        update[REVIEWED] = {"value": outcome["output"]} if is_output else None
    # State may still hold the result of an earlier call, or of this call before a rewind.
    if state.get(keys["status"]) is not None:
        update |= {keys["output"]: None, keys["status"]: None}
    added: Any = [*opened.stubs, record]
    if opened.replaced is not None:
        added = Overwrite([*opened.replaced, record])
    return {**update, keys["attempts"]: added}


class _TryAgainError(Exception):
    """Raised to make LangGraph run the step `call` again after a transient failure."""


def transport_policy(policy: RetryPolicy | None) -> RetryPolicy | None:
    """Return the option `transient` as a policy that repeats only after `_TryAgainError`."""
    return policy and policy._replace(retry_on=_TryAgainError)


async def _try_again(settings: Settings, outcome: Outcome, this_try: int, error: Exception) -> None:
    """Raise if the request failed in a transient way, so that LangGraph repeats the request.

    Raises:
        _TryAgainError: If `transient` allows one more request within the attempt.
    """
    transient, failure = settings.transient, outcome["record"]["failure"]
    may_try_again = transient is not None and this_try < transient.max_attempts
    if failure and failure["kind"] == "transient" and may_try_again:
        await sleep(retry_after(error))
        raise _TryAgainError from error


def _context(limits: Limits, record: Attempt) -> AttemptContext:
    return AttemptContext(record["number"], record["idempotency_key"], limits.deadline)


def _new_record(
    given: StepInput,
    execution: ExecutionInfo | None,
    loop: Loop,
    attempts: list[Attempt],
    params: Encoded,
    added: list[Addition],
) -> Attempt:
    """Create the record of the next attempt, with redacted params if `redact` is set."""
    plan, settings, namespace = given.plan, given.plan.settings, given.namespace
    # All calls of the outermost graph have the empty namespace. The checkpoint at which a call
    # began makes its idempotency key unique. A call that a crash repeats begins at the same
    # checkpoint.
    if execution is not None and not namespace:
        loop["origin"] = loop["origin"] or execution.checkpoint_id
    begun = [given.run.thread, namespace, len(attempts) + 1, params.view, params.types]
    record = open_attempt(
        attempts,
        params,
        added,
        name=settings.name,
        author=loop["author"],
        reason=loop["reason"],
        idempotency_key=digest(*begun, *filter(None, (loop["fork"], loop["origin"]))),
        labels=settings.labels,
    )
    # If `transient` repeats the request, the attempt began when its first request was made.
    began = execution.node_first_attempt_time if execution else None
    moment = datetime.now(UTC) if began is None else datetime.fromtimestamp(began, UTC)
    record["started_at"] = moment.isoformat(timespec="microseconds")
    record.update(cast("Attempt", given.run.trace.kept))
    if plan.validator is not None and plan.validator.wants_message:
        record["is_message"] = True
    if subject := _subject(plan, params):
        record["subject"] = subject
    if settings.redact is not None:
        shown = redacted(params.view, settings.redact, plan.codec.names)
        record.update({"redacted": True, "params_shown": shown})
    return record


def _subject(plan: Plan[Any], params: Encoded) -> str | None:
    """Return the redacted option `subject` on one line; None if its function fails."""
    subject, redact = plan.settings.subject, plan.settings.redact
    with informing("`subject`", redact):
        if callable(subject):
            given: Any = subject(plan.codec.decode(params.view, params.types))
            if not isinstance(given, str):
                raise TypeError(f"`subject` returned {with_article(type(given).__name__)}: a text?")
            subject = given
        return cut(" ".join(redacted(subject, redact).split()), MAX_SUBJECT) if subject else None
    return None


def _position(given: StepInput) -> tuple[Loop, list[Attempt], bool]:
    """Return the loop's own state, its attempts, and whether they belong to an earlier call."""
    loop, attempts = given.loop, given.attempts
    waits, ended = loop["next"] == "review", loop["next"] == "end"
    # If the last record of the input is `running`, its attempt has not been made yet.
    if attempts and attempts[-1]["status"] == "running" and loop["next"] == "call":
        asked = attempts[-1]
        loop.update({"author": asked["author"], "reason": asked["reason"]})
        return loop, attempts[:-1], False
    if attempts and ended:
        return fresh_loop(), [], True
    # If no attempt may follow the last one, all these attempts belong to an earlier call.
    if attempts and not (waits or goes_on(attempts[-1])):
        return {**fresh_loop(), "types": loop["types"], "identity": loop["identity"]}, [], True
    # Somebody edited the params in state during an open review. The review closes, and the facts
    # that identify the call stay.
    if loop["next"] != "call":
        known = ("identity", "function", "given", "origin", "task_path", "note", "continues")
        old: Any = loop
        kept = {key: old[key] for key in (*known, "types", *no_sums())}
        edited: Any = {**fresh_loop(), **kept, "author": "state edit"}
        return edited, attempts, False
    return loop, attempts, False
