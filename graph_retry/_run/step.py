"""The base of all steps of the loop: a step's input, and the LangGraph node that runs it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Command, Overwrite

from graph_retry._attempts import readable
from graph_retry._awaiting import SyncRun, run_async, run_sync
from graph_retry._langgraph.open_reviews import row_of
from graph_retry._langgraph.run_config import call_namespace, current_thread
from graph_retry._output.build import SchemaOfParams
from graph_retry._params.patch import Encoded
from graph_retry._plan.plan import Plan
from graph_retry._run.keeping import with_whole_ledger
from graph_retry._run.running import LoopRun, current_run
from graph_retry._state import LOOP, Loop, loop_of
from graph_retry._transitions import next_step
from graph_retry.errors import ReplayMismatch
from graph_retry.records import Attempt


@dataclass(frozen=True)
class StepInput:
    """The input of a step: its run, the graph state, and the position and ledger in that state."""

    run: LoopRun
    plan: Plan[Any]
    state: Mapping[str, Any]
    loop: Loop
    attempts: list[Attempt]

    @property
    def params(self) -> Encoded:
        """The params in state, with the types that their JSON does not show."""
        return Encoded(self.state[self.plan.settings.keys["params"]], self.loop["types"])


StepFunction = Callable[[StepInput], Coroutine[Any, Any, dict[str, Any]]]
"""A step: takes its input and returns an update of the graph's state."""


class Step(Runnable[Any, Any]):
    """A graph node that runs one step, both under `invoke` and under `ainvoke`.

    The step returns the next step with its update, unless an edge of the graph names it.
    """

    def __init__(self, step: StepFunction, *, chooses_next: bool = True) -> None:
        self._step, self._chooses_next = step, chooses_next

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Run the step on a state."""
        given = _begun(input)
        with SyncRun(steps := self._step(given)) as run:
            steps.send(None)
        return run_sync(self._ended(given, run.result))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Run the step on a state, on the event loop."""
        given = _begun(input)
        return await run_async(self._ended(given, await run_async(self._step(given))))

    async def _ended(self, given: StepInput, update: dict[str, Any]) -> Any:
        trace_update(given, update)
        note_answered(given, update)
        settings = given.plan.settings
        update = await with_whole_ledger(settings.keys["attempts"], given.attempts, update)
        if not self._chooses_next:
            return update
        return Command(update=update, goto=next_step(settings, {**given.state, **update}))


def _begun(state: Mapping[str, Any]) -> StepInput:
    given = read_input(current_run(), state)
    begin_trace(given)
    return given


def note_answered(given: StepInput, update: dict[str, Any]) -> None:
    """If an update closes the call's open review, add the review to the run's answered ones."""
    before, after = given.loop["review"], cast("Loop | None", update.get(LOOP))
    if before is not None and after is not None and after["review"] is None:
        here = (current_thread(), call_namespace(), before["review_id"], before["asked_at"])
        given.run.answered.append(row_of(*here))


def read_input(run: LoopRun, state: Mapping[str, Any]) -> StepInput:
    """Read a step's input from state; a ledger of an older version gets today's keys."""
    loop = loop_of(state)
    check_identity(run.plan.settings.name, loop["identity"], run.identity)
    attempts = readable(state.get(run.plan.settings.keys["attempts"]) or [])
    _check_keys(run.plan, state, has_failed=loop["review"] is not None)
    return StepInput(run, _fitted(run.plan, state, loop), state, loop, attempts)


def _check_keys(plan: Plan[Any], state: Mapping[str, Any], *, has_failed: bool) -> None:
    """Refuse a saved call if the plan names different state keys than the call was saved under."""
    params, attempts = plan.settings.keys["params"], plan.settings.keys["attempts"]
    renamed = params if params not in state else attempts
    if has_failed and not (params in state and state.get(attempts)):
        raise ReplayMismatch(
            f"`{plan.settings.name}` goes on with a saved call that has nothing under the state "
            f"key `{renamed}`: if it was renamed in `keys=`, give it its old name back."
        )


def _fitted(plan: Plan[Any], state: Mapping[str, Any], loop: Loop) -> Plan[Any]:
    """Return the plan. If a field of the params holds the output schema, read it from there."""
    output, key = plan.validator, plan.settings.keys["params"]
    if not isinstance(output, SchemaOfParams):
        return plan
    params = plan.codec.load(state.get(key), loop["types"]).view
    return replace(plan, validator=output.fitted(params))


def check_identity(name: str, saved: str | None, identity: str | None) -> None:
    """Refuse to run a call on the saved state of a different call.

    Raises:
        ReplayMismatch: If the saved state has a different identity.
    """
    if saved is not None and identity is not None and saved != identity:
        raise ReplayMismatch(
            f"`{name}` was given the saved state of another call: this version of LangGraph names "
            "the graphs of a task in a way that graph-retry does not know. Nothing was called."
        )


def begin_trace(given: StepInput) -> None:
    """Open the span of a run before its first step."""
    validator = given.plan.validator
    kind = None if validator is None else "text" if validator.wants_text else "json"
    given.run.trace.begin(
        given.plan.settings, given.attempts, thread=current_thread(), output_type=kind
    )


def trace_update(given: StepInput, update: Mapping[str, Any]) -> None:
    """Record in the run's trace that a step asked, took a decision, or ended the call."""
    trace, keys = given.run.trace, given.plan.settings.keys
    loop: Loop | None = update.get(LOOP)
    if loop is None:
        return
    before, after = given.loop["review"], loop["review"]
    written: Any = update.get(keys["attempts"])
    records: list[Any] = (written.value if isinstance(written, Overwrite) else written) or []
    last: Any = records[-1] if records else {}
    number = last.get("number", len(given.attempts))
    decision = last.get("decision")
    if before is not None and after is None and decision is not None:
        reviewed: Any = {**(given.attempts[-1] if given.attempts else {}), **last}
        trace.decided(decision, reviewed, before["asked_at"], given.plan.settings.name)
    if after is not None and (before is None or before["review_id"] != after["review_id"]):
        trace.asked(after["review_id"], number, is_new=before is None)
    if loop["next"] == "end":
        status = str(update.get(keys["status"], ""))
        trace.ended(status, number, given.plan.settings.name)
