"""Report on the loop: its events, each attempt, and the end of the call."""

from __future__ import annotations

import logging
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.config import get_config, get_stream_writer

from graph_retry._awaiting import call
from graph_retry._langgraph.run_config import seen_from, thread_in_logs
from graph_retry._loop.plan import Plan
from graph_retry._loop.running import current_run
from graph_retry._loop.step import StepInput
from graph_retry._loop.task import as_task
from graph_retry._redact import shown_record
from graph_retry._signatures import name_of
from graph_retry._wording import counted
from graph_retry.errors import AttemptsExhausted, CallCancelled, GraphRetryError
from graph_retry.hooks._lessons import lessons_of
from graph_retry.records import Attempt

_LOG = logging.getLogger("graph_retry.reviews")


def emit(event: str, name: str, attempt: int, **details: Any) -> None:
    """Write one event, e.g. `{"type": "graph_retry", "event": "attempt_started", …}`.

    It is an event of the node that made the call, and so is seen without `subgraphs=True`.
    """
    config = seen_from(current_run().caller, get_config())
    token = var_child_runnable_config.set(config)
    try:
        write = get_stream_writer()
    finally:
        var_child_runnable_config.reset(token)
    write({"type": "graph_retry", "event": event, "name": name, "attempt": attempt, **details})


def log_review(event: str, name: str, attempt: int, review_id: str, author: str = "") -> None:
    """Log what became of a review, by names alone: texts of models and people are not for logs."""
    by = f" by {author.partition(':')[0]}" if author else ""
    what = "review %s of `%s` (attempt %s, %s) was %s%s"
    _LOG.info(what, review_id, name, attempt, thread_in_logs(), event, by)


async def finished(plan: Plan[Any], record: Attempt) -> dict[str, Any]:
    """Report the attempt to listeners, and return its lessons as a state update.

    A report that is done is not repeated when the step around it runs again.
    """
    settings, name = plan.settings, plan.settings.name
    emit("attempt_finished", name, record["number"], status=record["status"])
    on_attempt = settings.on_attempt
    if settings.budget is not None:
        settings.budget.count(record)
    if on_attempt is not None:
        listener = name_of(on_attempt, "on_attempt")

        async def report() -> None:
            await call(on_attempt, shown_record(record))

        await as_task(f"{name}:{listener}#{record['number']}", report)
    if settings.lessons is None:
        return {}
    return {settings.keys["lessons"]: lessons_of(name, [record])}


WITH_OUTPUT = ("succeeded", "overruled")
"""The status of a call that ended with an output."""


def without_output(plan: Plan[Any], status: str) -> dict[str, Any]:
    """Return the state update of a call that ends without an output.

    The keys are the graph's own, where an earlier call may have left its output.
    """
    return {plan.settings.keys["output"]: None, plan.settings.keys["status"]: status}


def ended_error(name: str, status: str, attempts: list[Attempt]) -> GraphRetryError:
    """Return the error of a call that ended `cancelled` or `exhausted`."""
    last, failure = attempts[-1], attempts[-1]["failure"]
    why = f"{failure['type']}: {failure['message']}" if failure else "its output was valid"
    made = counted(len(attempts), "attempt")
    if status == "cancelled":
        reason = (last["decision"] or {}).get("message")
        said = f": {reason}" if reason else ""
        msg = f"`{name}` was cancelled by a reviewer after {made}{said} ({why})"
        return CallCancelled(msg, attempts, reason=reason)
    msg = (
        f"`{name}` failed {made} and may not ask anybody; the last failure was "
        f"{why.rstrip('.')}. Add hooks, raise `auto_retries` or `max_attempts`, or allow `review`."
    )
    return AttemptsExhausted(msg, attempts)


async def give_up_step(given: StepInput) -> dict[str, Any]:
    """Raise how the call ended; the step may be run again, nothing repeats."""
    settings = given.plan.settings
    raise ended_error(settings.name, given.state[settings.keys["status"]], given.attempts)
