"""The `call` step: open an attempt, and call the model once.

The model call is a LangGraph task of its own. Its result is saved when it returns, so a crash later
in this step does not repeat it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any, cast
from uuid import uuid4

from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from graph_retry._attempts import open_attempt
from graph_retry._json import digest
from graph_retry._langgraph.fork import continued
from graph_retry._langgraph.run_config import (
    call_namespace,
    current_saver,
    current_thread,
)
from graph_retry._loop.after_attempt import reviewed_later, succeeded
from graph_retry._loop.check import needs_repair, read_raw
from graph_retry._params.patch import Encoded
from graph_retry._plan.first_checks import check_first
from graph_retry._plan.plan import Plan
from graph_retry._redact import redacted, redacted_fields
from graph_retry._request.request import make_request, transport_policy
from graph_retry._run.events import emit
from graph_retry._run.step import StepInput, read_input
from graph_retry._run.task import as_task
from graph_retry._state import ANSWER, LOOP, REVIEWED, Loop, fresh_loop, loop_of
from graph_retry._transitions import goes_on
from graph_retry.records import Attempt


async def call_step(given: StepInput) -> dict[str, Any]:
    """Open the record of the next attempt, call the model once, and choose the next step."""
    run, keys = given.run, given.plan.settings.keys
    # After a fork, the first step continues from the past state. Later steps must not, and state
    # shows the difference: each first step writes the key `ANSWER`.
    past = run.past if ANSWER not in given.state else None
    if past is not None:
        # The past call was beyond this step: restore its state, and the router goes on from there.
        if loop_of(past)["next"] != "call":
            return continued(past, keys["attempts"])
        given = read_input(run, {**given.state, **past})
    # `review_later` made this input: it wants a review of its last attempt, and no call.
    if given.attempts and given.attempts[-1].get("to_review"):
        return reviewed_later(given)
    plan, state, settings = given.plan, given.state, given.plan.settings
    loop, attempts, ledger_is_old = _position(given)
    params = plan.codec.load(state.get(keys["params"]), loop["types"])
    loop["identity"] = loop["identity"] or run.identity
    loop["task_path"] = loop["task_path"] or run.task_path
    loop["note"] = loop["note"] or (run.slot.note if run.slot else None)
    loop["origin"] = loop["origin"] or _origin()
    record = _opened(plan, loop, attempts, params)
    record.update(cast("Attempt", run.trace.kept))
    name, number = settings.name, record["number"]
    if number == 1:
        check_first(plan, params, run.caller, is_task=run.is_task)
    emit("attempt_started", name, number)
    request = partial(make_request, run, plan, params, record, count(1))
    outcome = await as_task(f"{name}#{number}", request, transport_policy(settings.transient))
    record.update(cast("Attempt", outcome["record"]))
    loop.update({"types": params.types, "output_types": outcome["output_types"]})
    update: dict[str, Any] = {ANSWER: None}
    if state.get(keys["params"]) != params.view:
        update[keys["params"]] = params.view
    if state.get(REVIEWED) is not None:
        update[REVIEWED] = None
    # State may still hold the result of an earlier call, or of this call before a rewind.
    if state.get(keys["status"]) is not None:
        update |= {keys["output"]: None, keys["status"]: None}
    update |= await _called(plan, loop, record, outcome["output"])
    added: Any = [record]
    if ledger_is_old or past is not None:
        added = Overwrite([*attempts, record])
    return {LOOP: loop, **update, keys["attempts"]: added}


def _opened(plan: Plan[Any], loop: Loop, attempts: list[Attempt], params: Encoded) -> Attempt:
    """Create the record of the next attempt; with `redact`, it also gets the params to show."""
    settings = plan.settings
    record = open_attempt(
        attempts,
        params,
        name=settings.name,
        author=loop["author"],
        reason=loop["reason"],
        started_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        idempotency_key=_idempotency_key(len(attempts) + 1, params, loop),
        labels=settings.labels,
    )
    if settings.redact is not None:
        shown = redacted(params.view, settings.redact, plan.codec.names)
        record.update({"redacted": True, "params_shown": shown})
    return record


async def _called(plan: Plan[Any], loop: Loop, record: Attempt, output: Any) -> dict[str, Any]:
    """Put the step that follows the model call into `loop`; return further updates of state."""
    settings, validator = plan.settings, plan.validator
    has_failed = record["failure"] is not None
    if validator is not None and not has_failed:
        if needs_repair(record, validator, settings):
            loop["next"] = "repair"
        else:
            record.update(cast("Attempt", read_raw(record, validator, settings)))
            loop["next"] = "validate"
        return {}
    record["status"] = "failed" if has_failed else "succeeded"
    shown = redacted_fields(record, settings.redact, plan.output_names)
    record.update(cast("Attempt", shown))
    if has_failed:
        loop["next"] = "revise"
        return {}
    return await succeeded(plan, loop, record, output)


def _position(given: StepInput) -> tuple[Loop, list[Attempt], bool]:
    """Return the position, this call's earlier attempts, and whether to replace the saved ledger.

    The ledger in state is replaced if it belongs to an earlier call.
    """
    loop, attempts = given.loop, given.attempts
    waits, ended = loop["next"] == "review", loop["next"] == "end"
    # The input may end with an attempt that is still to be made: a record that is `running`.
    if attempts and attempts[-1]["status"] == "running" and loop["next"] == "call":
        asked = attempts[-1]
        loop.update({"author": asked["author"], "reason": asked["reason"]})
        return loop, attempts[:-1], False
    if attempts and ended:
        return fresh_loop(), [], True
    # If no attempt may follow the last one, all these attempts belong to an earlier call.
    if attempts and not (waits or goes_on(attempts[-1])):
        return {**fresh_loop(), "types": loop["types"], "identity": loop["identity"]}, [], True
    # The router came here from an open review, because somebody edited the params in state.
    if loop["next"] != "call":
        known = ("identity", "given", "origin", "task_path", "note", "continues")
        old: Any = loop
        kept = {key: old[key] for key in (*known, "types", "seen", "spent")}
        edited: Any = {**fresh_loop(), **kept, "author": "state edit"}
        return edited, attempts, False
    return loop, attempts, False


def _origin() -> str | None:
    """Return the part of idempotency keys that distinguishes calls with the same namespace.

    All calls of the outermost graph have the empty namespace. For them, the part is the id of the
    checkpoint from which the call began: it stays the same if a crash repeats the call. Without a
    checkpointer, no call can be repeated, so the part is a new random id.
    """
    if current_saver() is None:
        return str(uuid4())
    info = get_runtime().execution_info
    return None if call_namespace() or info is None else info.checkpoint_id


def _idempotency_key(number: int, params: Encoded, loop: Loop) -> str:
    parts = [current_thread(), call_namespace(), number, params.view, params.types]
    return digest(*parts, *filter(None, (loop["fork"], loop["origin"])))
