"""How a call ends without an output."""

from __future__ import annotations

from typing import Any

from graph_retry._engine.plan import Plan
from graph_retry._engine.step import StepInput
from graph_retry.errors import AttemptsExhausted, CallCancelled, GraphRetryError
from graph_retry.records import Attempt


def without_output(plan: Plan[Any], status: str) -> dict[str, Any]:
    """Return what a call that ends without an output leaves in state.

    The keys are the graph's own, where an earlier call may have left its output.
    """
    return {plan.settings.keys["output"]: None, plan.settings.keys["status"]: status}


def ended_error(name: str, status: str, attempts: list[Attempt]) -> GraphRetryError:
    """Return the error of a call that ended `cancelled` or `exhausted`."""
    last, failure = attempts[-1], attempts[-1]["failure"]
    why = f"{failure['type']}: {failure['message']}" if failure else "no failure recorded"
    if status == "cancelled":
        reason = (last["decision"] or {}).get("message")
        told = f": {reason}" if reason else ""
        msg = f"`{name}` was cancelled by a reviewer after {len(attempts)} attempt(s){told} ({why})"
        return CallCancelled(msg, attempts, reason=reason)
    msg = (
        f"`{name}` failed {len(attempts)} attempt(s) and may not ask anybody; the last failure was "
        f"{why}. Add hooks, raise `auto_retries` or `max_attempts`, or allow `review`."
    )
    return AttemptsExhausted(msg, attempts)


async def give_up_step(given: StepInput) -> dict[str, Any]:
    """Raise how the call ended; the step may be run again, nothing repeats."""
    settings = given.plan.settings
    raise ended_error(settings.name, given.state[settings.keys["status"]], given.attempts)
