"""The `call` step: one attempt's model call, whose finished result is never asked for again."""

from __future__ import annotations

import logging
import time
import traceback
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any, cast
from uuid import uuid4

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import BaseMessage
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite, RetryPolicy
from typing_extensions import TypedDict

from graph_retry._attempts import open_attempt
from graph_retry._awaiting import AsyncUnderSyncError, call, sleep
from graph_retry._engine.check import needs_repair, read_raw
from graph_retry._engine.finish import emit, finished
from graph_retry._engine.fork import continued
from graph_retry._engine.hooks import check_params
from graph_retry._engine.plan import Plan
from graph_retry._engine.run_config import current_saver, seen_from
from graph_retry._engine.running import LoopRun
from graph_retry._engine.state import (
    ANSWER,
    LOOP,
    Loop,
    call_namespace,
    current_thread,
    fresh_loop,
    loop_of,
)
from graph_retry._engine.step import StepInput, read_input
from graph_retry._engine.stored import store, unsavable
from graph_retry._engine.task import as_task
from graph_retry._engine.tracing import model_call_span
from graph_retry._json import digest
from graph_retry._output.build import wrap_error
from graph_retry._output.completion import read_result
from graph_retry._output.failures import failure_of, finish_kind
from graph_retry._output.provider_errors import retry_after
from graph_retry._params.codec import Encoded
from graph_retry._redact import redacted, redacted_fields, without_keys
from graph_retry._signatures import AttemptContext, name_of
from graph_retry.options import Settings
from graph_retry.records import Attempt, Failure, FailureKind

_LOG = logging.getLogger("graph_retry")


class _Outcome(TypedDict):
    record: dict[str, Any]
    output: Any
    output_types: dict[str, str]


async def call_step(given: StepInput) -> dict[str, Any]:
    """Call the model once and open the attempt's record."""
    run, keys = given.run, given.plan.settings.keys
    past = run.past if ANSWER not in given.state else None  # a call that has begun has this key
    if past is not None:
        if loop_of(past)["next"] != "call":
            return continued(past, keys["attempts"])
        given = read_input(run, {**given.state, **past})
    plan, state, name = given.plan, given.state, given.plan.settings.name
    loop, attempts, ledger_is_old = _position(given)
    params = plan.codec.load(state.get(keys["params"]), loop["types"])
    loop["identity"] = loop["identity"] or run.identity
    loop["task_path"] = loop["task_path"] or run.task_path
    loop["origin"] = loop["origin"] or _origin()
    record = open_attempt(
        attempts,
        params,
        name=name,
        author=loop["author"],
        reason=loop["reason"],
        started_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        idempotency_key=_idempotency_key(len(attempts) + 1, params, loop),
    )
    number = record["number"]
    if number == 1:
        check_params(plan, params)
    emit("attempt_started", name, number)
    attempt = partial(_attempt, run, plan, params, record, count(1))
    policy = _transport_policy(plan.settings.transient)
    outcome = await as_task(f"{name}#{number}", attempt, policy)
    record.update(cast("Attempt", outcome["record"]))
    loop.update({"types": params.types, "output_types": outcome["output_types"]})
    update: dict[str, Any] = {keys["params"]: params.view, ANSWER: None}
    if state.get(keys["status"]) is not None:  # of an earlier call, or before a rewind
        update |= {keys["output"]: None, keys["status"]: None}
    if record["failure"] is not None:
        record["status"], loop["next"] = "failed", "revise"
        record.update(cast("Attempt", redacted_fields(record, plan.settings.redact)))
    elif plan.validator is None:
        record["status"], loop["next"] = "succeeded", "end"
        record.update(cast("Attempt", redacted_fields(record, plan.settings.redact)))
        update |= {keys["output"]: outcome["output"], keys["status"]: "succeeded"}
        update |= await finished(plan, record)
    elif needs_repair(record, plan.validator, plan.settings):
        loop["next"] = "repair"
    else:
        record.update(cast("Attempt", read_raw(record, plan.validator, plan.settings)))
        loop["next"] = "validate"
    added: Any = [record]
    if ledger_is_old or past is not None:
        added = Overwrite([*attempts, record])
    return update | {LOOP: loop, keys["attempts"]: added}


def _position(given: StepInput) -> tuple[Loop, list[Attempt], bool]:
    """Tell a continued loop from a new input on a thread that has run before."""
    loop, attempts = given.loop, given.attempts
    if attempts and attempts[-1]["status"] == "running" and LOOP not in given.state:
        asked = attempts[-1]  # given in the input: an attempt that is to be made
        loop.update({"author": asked["author"], "reason": asked["reason"]})
        loop["types"] = asked["params_types"]
        return loop, attempts[:-1], False
    decided = attempts[-1]["decision"] if attempts else None
    ended = decided is not None and decided["type"] in ("reject", "respond")
    ended = ended or (LOOP in given.state and loop["next"] == "end")
    if attempts and (ended or attempts[-1]["status"] != "failed"):
        return fresh_loop(), [], True
    if loop["next"] != "call":
        kept = ("identity", "given", "origin", "task_path", "types", "seen", "spent")
        old: Any = loop
        edited: Any = {**fresh_loop(), **{key: old[key] for key in kept}, "author": "state edit"}
        return edited, attempts, False
    return loop, attempts, False


def _origin() -> str | None:
    """Return what tells a call from others where its namespace does not.

    In the outermost graph that is the checkpoint the call began from, which a crash leaves as it
    is. Where nothing is saved, nothing is repeated either.
    """
    if current_saver() is None:
        return str(uuid4())
    info = get_runtime().execution_info
    return None if call_namespace() or info is None else info.checkpoint_id


def _idempotency_key(number: int, params: Encoded, loop: Loop) -> str:
    parts = [current_thread(), call_namespace(), number, params.view, params.types]
    return digest(*parts, *filter(None, (loop["fork"], loop["origin"])))


class _TryAgainError(Exception):
    """A transient failure, on its way to LangGraph's retry policy."""


def _transport_policy(policy: RetryPolicy | None) -> RetryPolicy | None:
    return policy and policy._replace(retry_on=_TryAgainError)


async def _attempt(
    run: LoopRun, plan: Plan[Any], params: Encoded, record: Attempt, tries: Iterator[int]
) -> _Outcome:
    """Call the model with a copy of the params; return its result or its failure as data."""
    this_try, settings = next(tries), plan.settings
    copy = plan.codec.decode(params.view, params.types)
    started, error = time.perf_counter(), None
    with model_call_span(settings, record, params.view, this_try) as ended:
        try:
            _check_budget(settings, record)
            arguments = plan.arguments(copy, _context(settings, record))
            config = seen_from(run.caller, get_config())
            result = await call(plan.llm_call, *arguments, timeout=settings.timeout, config=config)
        except (GraphBubbleUp, AsyncUnderSyncError):
            raise
        except Exception as raised:  # noqa: BLE001 - whatever the user's function raises is a failure
            outcome, error = _read_error(plan, record, raised), raised
        else:
            outcome = _read(plan, result)
        ended(outcome["record"])
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
    """Refuse a request that a budget does not allow, unless somebody decided on it."""
    decided = record["author"].startswith(("human", "agent", "rewind"))
    if settings.budget is not None and not decided:
        settings.budget.check()


def _context(settings: Settings, record: Attempt) -> AttemptContext:
    deadline = None if settings.timeout is None else time.monotonic() + settings.timeout
    return AttemptContext(record["number"], record["idempotency_key"], deadline)


def _read_error(plan: Plan[Any], record: Attempt, error: Exception) -> _Outcome:
    """Put what a call raised into the terms of the ledger."""
    settings = plan.settings
    # A LangChain parser that could not read the model's text hands it over with its error.
    text = error.llm_output if isinstance(error, OutputParserException) else None
    if text is not None and plan.validator is not None:
        return _read(plan, text)
    if _LOG.isEnabledFor(logging.DEBUG):  # the ledger keeps the message alone
        trace = without_keys("".join(traceback.format_exception(error)))
        trace = redacted(trace, settings.redact)
        _LOG.debug("attempt %s of `%s` failed:\n%s", record["number"], settings.name, trace)
    failure = _failure_of(error, settings)
    # Only an error about the output has issues; a transport error is told by its message.
    issues = wrap_error(error) if failure["kind"].startswith("invalid_") else []
    raw = None if text is None else {"text": text}
    return _Outcome(
        record={"failure": failure, "issues": issues, "raw": raw}, output=None, output_types={}
    )


def _failure_of(error: Exception, settings: Settings) -> Failure:
    if isinstance(error, TimeoutError) and not str(error) and settings.timeout is not None:
        error = TimeoutError(f"no result within {settings.timeout:g} s")
    return failure_of(error, settings.classify(error))


def _read(plan: Plan[Any], result: Any) -> _Outcome:
    """Put a call's result into the terms of the ledger."""
    reading = read_result(result, plan.validator)
    record: dict[str, Any] = {"usage": reading.usage, "finish_reason": reading.finish_reason}
    outcome = _Outcome(record=record, output=None, output_types={})
    came = type(result).__name__
    if plan.validator is None:
        _keep(result, outcome, name_of(plan.llm_call, "llm_call"))
    else:
        record["failure"] = announced(
            reading.finish_reason, reading.refusal, wants_text=plan.validator.wants_text
        )
    value = None if reading.text is not None else store(reading.value)
    if reading.text is not None:
        record["raw"] = {"text": reading.text}
    elif value is not None:
        record["raw"] = {"value": value.view["value"]}
    else:
        record["raw"] = {"type": came}
        if plan.validator is not None:
            message = f"the call returned a `{came}`, which has no JSON form to validate"
            record["failure"] = _failure("invalid_schema", "TypeError", message)
    return outcome


def _keep(result: Any, outcome: _Outcome, made_by: str) -> None:
    """Make a result the output as it is, unless no checkpointer could save it."""
    stored = store(result)
    kept = result if stored is None else stored.view["value"]
    unsure = stored is None or isinstance(kept, str | BaseMessage)
    why = unsavable(kept) if unsure else None
    if why is not None and current_saver() is not None:
        # Left to the checkpointer, it would be raised from there, and the call made again.
        message = (
            f"`{made_by}` returned a `{type(result).__name__}` that cannot be saved ({why}): "
            "return text, a LangChain message, a `Completion`, JSON or another value that "
            "LangGraph's serializer stores; with `output=` only the text or JSON is kept"
        )
        outcome["record"]["failure"] = _failure("permanent", "TypeError", message)
    else:
        outcome["output"] = kept
        outcome["output_types"] = {} if stored is None else stored.types


def announced(
    finish_reason: str | None, refusal: str | None, *, wants_text: bool
) -> Failure | None:
    """Return the failure the provider itself announced; cut-off JSON is left to the reader."""
    if refusal:
        return _failure("refusal", "Refusal", refusal)
    kind = finish_kind(finish_reason)
    if kind == "refusal" or (kind in ("truncated", "context_overflow") and wants_text):
        stopped = f"the model stopped with `{finish_reason}`"
        return _failure(kind, kind.capitalize(), stopped)
    return None


def _failure(kind: FailureKind, type_: str, message: str) -> Failure:
    return {"kind": kind, "type": type_, "message": message}
