"""A run of the loop, the input of its steps, and the LangGraph node that runs a step."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_stream_writer
from langgraph.types import Command, Overwrite, StreamWriter

from graph_retry._core.ground.functions.awaiting import SyncRun, is_sync, run_async, run_sync
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.ground.functions.signatures import name_of
from graph_retry._core.langgraph.fork import read_once_a_step, tell_ended_reviews
from graph_retry._core.langgraph.run_config import current_saver, namespace_in
from graph_retry._core.langgraph.seen import Write
from graph_retry._core.langgraph.storage.checkpoints import OpenReview, open_review
from graph_retry._core.loop.run.events import Event, EventKind, log_review, streaming
from graph_retry._core.loop.run.keeping import with_whole_ledger
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.tracing import CallTrace
from graph_retry._core.output.build import SchemaOfParams
from graph_retry._core.params.patch import Encoded
from graph_retry._core.state.attempts import readable
from graph_retry._core.state.execution import Slot
from graph_retry._core.state.position import LOOP, WRITES, Loop, loop_of
from graph_retry._core.state.transitions import WITH_OUTPUT, next_step
from graph_retry.errors import ReplayMismatch
from graph_retry.records import Attempt, shown_record

T = TypeVar("T")

RUN = "__graph_retry_run"
"""The key of `configurable` under which the steps find their `LoopRun`.

LangGraph copies keys into checkpoint metadata, except keys that begin with two underscores.
"""


@dataclass(frozen=True)
class LoopRun:
    """One run of the loop, from its start or its resumption to its end or its next interrupt.

    plan: The plan of the call.
    caller: The config of the node that made the call; None outside any graph.
    write: Writes custom events in the name of the caller's node; None if each step has its own
        writer.
    thread: The id of the thread; None outside any thread.
    identity: The identity of the call in its task; None if the task is the call.
    task_path: The path of nodes that leads to the task, without the task's id.
    is_task: Whether LangGraph runs the loop directly, as a node of a graph.
    saver: The checkpointer of the run.
    slot: The place of the call's saved state, and the other calls of the same node.
    trace: The OpenTelemetry span of the run.
    answered: The reviews that were answered in this run, as rows of the table of open reviews.
    writes: What the user's function wrote to the caller's state, if its attempt succeeded.
    ended: A warning about the review that the input of this run ended; empty if there is none.
    mistakes: Errors of calls inside the user's function. They are raised again, because the
        function may catch them.
    """

    plan: Plan[Any]
    caller: RunnableConfig | None = None
    write: StreamWriter | None = None
    thread: str | None = None
    identity: str | None = None
    task_path: str | None = None
    is_task: bool = False
    saver: BaseCheckpointSaver[Any] | None = None
    slot: Slot = field(default_factory=Slot)
    trace: CallTrace = field(default_factory=CallTrace)
    answered: list[OpenReview] = field(default_factory=list[OpenReview])
    writes: list[Write] = field(default_factory=list[Write])
    ended: str = ""
    mistakes: list[Exception] = field(default_factory=list[Exception])

    async def ended_reviews(self, when: str = "at the end") -> str:
        """Warn if a new input or a fork of the thread has ended open reviews. Return the warning.

        Only the first new call of a graph step looks for ended reviews. It looks when it asks a
        person, and again at its end, because LangGraph may save the input while the call runs.
        """
        if self.ended or self.saver is None or not self.slot.namespace or self.slot.is_saved:
            return self.ended
        tell = partial(tell_ended_reviews, self.saver, self.thread)
        with informing("the warning of reviews that a new input ended"):
            around = (self.caller or {}).get("configurable", {})
            return await read_once_a_step(around, f"ended, {when}", tell)
        return ""

    def emit(
        self, kind: EventKind, attempt: int, record: Attempt | None = None, **details: Any
    ) -> None:
        """Send an event to the stream, the log, the trace and the option `observers`.

        The stream shows the event without `subgraphs=True`, as an event of the node that made the
        call.
        """
        settings = self.plan.settings
        event = Event(
            kind=kind,
            name=settings.name,
            attempt=attempt,
            thread_id=self.thread,
            labels=settings.labels,
            details=details,
            record=record and shown_record(record),
        )
        with informing(f"the event `{kind}` in the stream"):
            streaming(self.write or get_stream_writer())(event)
        with informing(f"the log of the event `{kind}`"):
            log_review(event)
        self.trace.observe(event)
        for observer in settings.observers:
            name = name_of(observer, "observers")
            with informing(f"`observers` (`{name}`) of the event `{kind}`", settings.redact):
                observer(event)


@dataclass(frozen=True)
class StepInput:
    """The input of a step. `loop` and `attempts` (the ledger) are parts of the state.

    `config` is the config with which LangGraph runs the step.
    """

    run: LoopRun
    plan: Plan[Any]
    state: Mapping[str, Any]
    loop: Loop
    attempts: list[Attempt]
    config: RunnableConfig

    @property
    def params(self) -> Encoded:
        """The params in state, with their Python types."""
        return Encoded(self.state[self.plan.settings.keys["params"]], self.loop["types"])

    @property
    def ledger_key(self) -> str:
        """The state key of the ledger."""
        return self.plan.settings.keys["attempts"]

    @property
    def namespace(self) -> str:
        """The checkpoint namespace of the call."""
        return namespace_in(self.config)


StepFunction = Callable[[StepInput], Coroutine[Any, Any, dict[str, Any]]]
"""A coroutine function that takes the input of a step and returns an update of the state."""


class Step(Runnable[Any, Any]):
    """A graph node that runs one step, in sync and in async code.

    The node returns a `Command` with the state update and the next step. With `chooses_next=False`,
    it returns only the update, because an edge of the graph names the next step.
    """

    def __init__(self, step: StepFunction, *, chooses_next: bool = True) -> None:
        self._step, self._chooses_next = step, chooses_next

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Run the step in sync code."""
        given = _begun(input, config)
        with SyncRun(steps := self._step(given)) as run:
            steps.send(None)
        update = run.result
        if _ends(update):
            update = run_sync(with_whole_ledger(given.ledger_key, given.attempts, update))
        return self._ended(given, update)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Run the step in async code."""
        given = _begun(input, config)
        update = await run_async(self._step(given))
        if _ends(update):
            update = await with_whole_ledger(given.ledger_key, given.attempts, update)
        return self._ended(given, update)

    def _ended(self, given: StepInput, update: dict[str, Any]) -> Any:
        given.run.slot.check()
        if LOOP in update:
            _note_review(given, update)
        status = update.get(given.plan.settings.keys["status"])
        if update.get(WRITES, ()) is None or status not in (None, *WITH_OUTPUT):
            given.run.writes.clear()
        if not self._chooses_next:
            return update
        settings = given.plan.settings
        state = {**given.state, **update}
        following = next_step(state, settings.keys, raises=settings.on_cancel == "raise")
        return Command(update=update, goto=following)


def _ends(update: Mapping[str, Any]) -> bool:
    loop: Any = update.get(LOOP) or {}
    return bool(loop.get("next") == "end")


def _begun(state: Mapping[str, Any], config: RunnableConfig | None) -> StepInput:
    config = config or {}
    given = read_input(config.get("configurable", {})[RUN], state, config)
    given.run.slot.check()
    validator = given.plan.validator
    kind = None if validator is None else "text" if validator.wants_text else "json"
    # Before the first step, this opens the span of the run.
    given.run.trace.begin(
        given.plan.settings, given.attempts, thread=given.run.thread, output_type=kind
    )
    return given


def _note_review(given: StepInput, update: Mapping[str, Any]) -> None:
    """Emit events if a step asked a person, took a decision or ended the call.

    A closed review is also added to the run's `answered`.
    """
    run, settings = given.run, given.plan.settings
    before, after = given.loop["review"], update[LOOP]["review"]
    written: Any = update.get(settings.keys["attempts"])
    records: list[Any] = (written.value if isinstance(written, Overwrite) else written) or []
    last: Any = records[-1] if records else {}
    number = last.get("number", len(given.attempts))
    if before is not None and (after is None or after["review_id"] != before["review_id"]):
        run.slot.execution.settled.add(before["review_id"])
    if before is not None and after is None:
        here = (given.run.thread, given.namespace, before["review_id"], before["asked_at"])
        run.answered.append(open_review(*here))
        if (decision := last.get("decision")) is not None:
            reviewed: Any = {**(given.attempts[-1] if given.attempts else {}), **last}
            run.emit(
                "review_answered",
                number,
                reviewed,
                review_id=decision["review_id"],
                decision=decision["type"],
                author=decision["author"],
                asked_at=before["asked_at"],
            )
    if after is not None and (before is None or before["review_id"] != after["review_id"]):
        again = before is not None
        run.emit("review_asked", number, review_id=after["review_id"], again=again)
    if update[LOOP]["next"] == "end":
        run.emit("call_ended", number, status=str(update.get(settings.keys["status"], "")))


def read_input(run: LoopRun, state: Mapping[str, Any], config: RunnableConfig) -> StepInput:
    """Read the input of a step from the state. Older records get the keys that they lack.

    Raises:
        ReplayMismatch: If the state is of a different call, or was saved under different state
            keys.
    """
    plan, settings, loop = run.plan, run.plan.settings, loop_of(state)
    check_identity(settings.name, loop["identity"], run.identity)
    params, attempts = settings.keys["params"], settings.keys["attempts"]
    if loop["review"] is not None and not (params in state and state.get(attempts)):
        raise ReplayMismatch(
            f"`{settings.name}` continues a saved call that has nothing under the state key "
            f"`{attempts if params in state else params}`: if it was renamed in `keys=`, give it "
            "its old name back."
        )
    # A field of the params may hold the output schema.
    if isinstance(plan.validator, SchemaOfParams):
        view = plan.codec.load(state.get(params), loop["types"]).view
        plan = replace(plan, validator=plan.validator.fitted(view))
    return StepInput(run, plan, state, loop, readable(state.get(attempts) or []), config)


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


async def as_task(name: str, part: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a part of a step as a LangGraph task, so that a resumed run does not repeat the part.

    Without a checkpointer, nothing can be resumed, so the part runs directly.
    """
    if current_saver() is None:
        return await part()
    from langgraph.func import task  # noqa: PLC0415 - a noticeable part of the import time

    make_task: Any = task(name=name)
    if is_sync():
        result: T = make_task(lambda: run_sync(part()))().result()
    else:
        result = await make_task(part)()
    return result


async def in_place(_name: str, part: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a part of a step directly, in code outside a graph."""
    return await part()


class Once(Protocol):
    """A function, `as_task` or `in_place`, that runs a part of a step under a name."""

    async def __call__(self, name: str, part: Callable[[], Coroutine[Any, Any, T]], /) -> T: ...
