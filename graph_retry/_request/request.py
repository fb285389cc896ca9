"""Make one request to the model, and return its result or its failure as data.

A failure is data and not an exception, because LangGraph runs a task that raised again on resume.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.types import RetryPolicy

from graph_retry._awaiting import AsyncUnderSyncError, call, sleep
from graph_retry._langgraph.run_config import seen_from
from graph_retry._output.providers.errors import retry_after
from graph_retry._output.providers.objects import raise_error_in
from graph_retry._params.patch import Encoded
from graph_retry._plan.plan import Plan
from graph_retry._request.outcome import Outcome, outcome_of_error, outcome_of_result
from graph_retry._request.receiving import Reception
from graph_retry._run.running import LoopRun
from graph_retry._signatures import AttemptContext, name_of
from graph_retry.options import Settings
from graph_retry.records import Attempt, Failure


class _TryAgainError(Exception):
    """Makes LangGraph's retry policy try again after a transient failure."""


def transport_policy(policy: RetryPolicy | None) -> RetryPolicy | None:
    return policy and policy._replace(retry_on=_TryAgainError)


async def make_request(
    run: LoopRun, plan: Plan[Any], params: Encoded, record: Attempt, tries: Iterator[int]
) -> Outcome:
    """Call the model with a copy of the params; return its result or its failure as data.

    `tries` counts the requests within the attempt, because LangGraph's retry policy may call this
    function several times.
    """
    this_try, settings = next(tries), plan.settings
    copy = plan.codec.decode(*params)
    started, error = time.perf_counter(), None
    reception = Reception(plan, record["number"])
    result: Any = None
    with run.trace.model_call(settings, record, params.view, this_try) as ended:
        try:
            _check_budget(settings, record)
            arguments = plan.arguments(copy, _context(settings, record))
            config = seen_from(run.caller, get_config())
            result = await call(
                plan.llm_call,
                *arguments,
                timeout=settings.timeout,
                config=config,
                receiver=reception,
            )
            if plan.validator is not None:
                raise_error_in(result)
        # LangGraph's control flow must pass. An async function in a sync run is a mistake that the
        # developer must see.
        except (GraphBubbleUp, AsyncUnderSyncError):
            raise
        except Exception as raised:  # noqa: BLE001 - whatever the user's function raises is a failure
            outcome, error = outcome_of_error(plan, record, raised), raised
        else:
            outcome = outcome_of_result(plan, result)
            outcome["record"].update(reception.stopped)
        finally:
            # A sync function that timed out still runs in its thread, and may still read a stream.
            reception.end()
        ended(outcome["record"], result)
    transient = settings.transient
    may_try_again = transient is not None and this_try < transient.max_attempts
    failure: Failure | None = outcome["record"].get("failure")
    if error and failure and failure["kind"] == "transient" and may_try_again:
        await sleep(retry_after(error))
        raise _TryAgainError from error
    outcome["record"]["duration_s"] = round(time.perf_counter() - started, 6)
    outcome["record"]["tries"] = this_try
    if plan.codec.changed_in_place(params, copy):
        warnings.warn(
            f"`{name_of(plan.llm_call, 'llm_call')}` changed its params in place; it worked on a "
            "copy, so the change is lost: make a new object instead.",
            stacklevel=2,
        )
    return outcome


def _check_budget(settings: Settings, record: Attempt) -> None:
    """Raise if the budget is used up. A request that a reviewer decided on is always allowed."""
    decided = record["author"].startswith(("human", "agent", "rewind"))
    if settings.budget is not None and not decided:
        settings.budget.check()


def _context(settings: Settings, record: Attempt) -> AttemptContext:
    deadline = None if settings.timeout is None else time.monotonic() + settings.timeout
    return AttemptContext(record["number"], record["idempotency_key"], deadline)
