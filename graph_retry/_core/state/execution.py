"""The calls that one execution of a task makes, and the calls that still run.

A node ends at its first pause or error, while other calls of the node may still run in asyncio
tasks or threads. Therefore a pausing call waits until the other calls have paused or ended.
LangGraph may also run the node again while a call still runs. Then the new run of this call waits
for the run before it.
"""

from __future__ import annotations

import logging
import threading
import time
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from graph_retry._core.ground.functions.awaiting import SharedReads, waited
from graph_retry._core.ground.held.captured import Captured
from graph_retry._core.params.patch import Encoded
from graph_retry._core.state.equal_calls import EqualCalls, check_equal, chosen, new_number, why_new
from graph_retry._core.state.identity import Made
from graph_retry._core.state.namespaces import call_namespace_of
from graph_retry._core.state.swallowed import Pauses
from graph_retry.errors import ReplayMismatch
from graph_retry.lossless._ground import as_repr

_LOG = logging.getLogger("graph_retry")

_PATIENCE = 60.0
"""The most seconds that a call waits for the other calls of its task, or for its earlier run.

The limit ends a deadlock of two calls that wait for each other. A model call that takes longer is
made again on resume.
"""

_EXCHANGED = (
    "`%s` continues a saved call, although its function holds another object than that call's did "
    "(they differ in %s): if two calls are meant, give each a `key=` of its own, such as the "
    "id of what it works on."
)

_LOOK_AGAIN = 1.0
"""Seconds between two looks at the runs, because a garbage-collected run reports no end."""

_lock = threading.RLock()
"""A lock, because one node may begin sync calls in several threads at once."""

_newest: WeakValueDictionary[tuple[str, str], Slot] = WeakValueDictionary()
"""The newest run of each call in this process, by thread and namespace."""


_paused: WeakKeyDictionary[Execution, None] = WeakKeyDictionary()
"""The executions in which a call has paused, as long as LangGraph keeps them."""


class Running:
    """The runs of calls that have not ended."""

    def __init__(self) -> None:
        self._runs: WeakSet[Slot] = WeakSet()
        self._none: Future[None] = Future()

    def __bool__(self) -> bool:
        """Whether a call runs."""
        return bool(self._runs)

    def add(self, run: Slot) -> None:
        """Note that a call runs, until `run` is garbage or `remove` is called."""
        with _lock:
            self._runs.add(run)
            if self._none.done():
                self._none = Future[None]()

    def remove(self, run: Slot) -> None:
        """Note that the run of a call has ended."""
        with _lock:
            self._runs.discard(run)
            if not self._runs and not self._none.done():
                self._none.set_result(None)

    async def wait(self) -> None:
        """Wait until no call runs, at most `_PATIENCE` seconds.

        The loop also waits for a finished future, which gives the other calls a turn. So the calls
        of a node ask in the order in which they paused. Then it looks again, because the end of one
        call may let another call begin.
        """
        ends = time.monotonic() + _PATIENCE
        while await waited(self._none, _LOOK_AGAIN) and self and time.monotonic() < ends:
            pass


@dataclass(eq=False)
class Execution:
    """The calls that one execution of a task makes.

    task, thread: The namespace of the task, and its thread; empty outside any thread.
    reads: Values that the calls read from the thread once and share, because the values stay the
        same while the task runs.
    begun: The number of calls that have begun, by namespace.
    functions: The functions of equal calls, as `{namespace of the first call: {number: function}}`.
    params_of_key: The first params of each call that has a key, by call name and key.
    requests: The first request at each place of an agent's conversation.
    settled: The ids of reviews whose answers this run of the node has applied or refused.
    running: The runs of calls that have not paused or ended.
    pauses: The calls that have paused.
    is_sent: Whether a `Send` made the task.
    order: The number of this execution among all executions of this process; it grows with time.
    """

    task: str = ""
    thread: str = ""
    reads: SharedReads = field(default_factory=SharedReads)
    begun: Counter[str] = field(default_factory=Counter[str])
    functions: dict[str, dict[int, Captured | None]] = field(default_factory=dict[str, Any])
    params_of_key: dict[tuple[str, str], Encoded] = field(default_factory=dict[Any, Encoded])
    requests: dict[str, dict[str, Any]] = field(default_factory=dict[str, Any])
    settled: set[str] = field(default_factory=set[str])
    running: Running = field(default_factory=Running)
    pauses: Pauses = field(default_factory=Pauses)
    is_sent: bool = False
    order: int = field(default_factory=count().__next__)

    def first_namespace(self, made: Made) -> str | None:
        """Return the namespace of the first call of the task that is equal to the call `made`.

        Return None if the call gets the namespace of its task. The first call that is the whole
        task gets this namespace, and so does a call without params or identity.
        """
        if made.is_task and not self.begun[self.task]:
            return None
        # If user code passes its config to several retry nodes, each looks like the whole task.
        made = replace(made, is_task=False) if made.is_task else made
        if made.identity is None or made.params is None:
            return None
        return call_namespace_of(self.task, made.name, made.identity)

    def earlier_run(self, made: Made) -> Slot | None:
        """Return the newest run of a call in this process; of equal calls, of the first one."""
        return _newest.get((self.thread, self.first_namespace(made) or self.task))

    def begin(self, slot: Slot, made: Made, saved: EqualCalls) -> None:
        """Count a call that begins, and set the call's namespace in `slot`.

        `saved` has the saved calls that are equal to this call, by number.

        Raises:
            PauseSwallowed: If code of the user has caught an earlier pause of the run.
            ReplayMismatch: If a newer execution of the task makes the call, or if it is not known
                which saved call this call continues.
            ValueError: If the key of the call also names a call with other params, or if the
                function of an equal call cannot be distinguished from this call's function.
        """
        # `keyrefs` is a list at once: other threads add to it while it is read.
        for other in [each() for each in _paused.keyrefs()]:
            if other is not None and other is not self and other.thread == self.thread:
                other.check_ended()
        with _lock:
            self._place(slot, made, saved)

    def paused(self, slot: Slot, has_ended: Callable[[], bool]) -> None:
        """Record that a call has paused; `has_ended` tells whether the task returned a result."""
        self.pauses.add(slot.shared, slot.name, slot.function, has_ended)
        _paused[self] = None

    def check_ended(self) -> None:
        """Raise if the task has ended with a result although one of its calls has paused.

        Raises:
            PauseSwallowed: If code of the node has caught the pause. A second check raises nothing.
        """
        self.pauses.check_ended(f"thread {as_repr(self.thread)}")

    def begin_beside(self, slot: Slot, made: Made, saved: EqualCalls) -> None:
        """Give a call a new namespace, because the task's namespace holds a different call."""
        with _lock:
            self.begun[self.task] -= 1
            self._place(slot, made, saved)

    def _place(self, slot: Slot, made: Made, saved: EqualCalls) -> None:
        """Set the namespace of a run's call, and register the run as the newest."""
        slot.namespace = self._registered(slot, made, saved)
        before = _newest.get((self.thread, slot.namespace))
        if before is not None and before.execution.order > self.order:
            raise _replaced(slot.namespace)
        slot.before, _newest[self.thread, slot.namespace] = before, slot

    def _registered(self, slot: Slot, made: Made, saved: EqualCalls) -> str:
        """Choose the number of a call, note the call, and return its namespace."""
        namespace = self.first_namespace(made)
        # A call that is known by its task need not have its params encoded again.
        params = None if namespace is None else made.params
        slot.name, slot.shared = made.name, namespace or self.task
        if namespace is None or params is None:
            self.begun[self.task] += 1
            return self.task
        made = replace(made, is_task=False) if made.is_task else made
        name, key, function = made.name, made.key, made.function
        known = self.params_of_key.setdefault((name, key), params) if key else params
        if known != params:
            raise ValueError(
                f"`key={as_repr(key)}` names two calls of `{name}` with different params in "
                "one node: give each call a key of its own."
            )
        self.pauses.check_equal(namespace, name, function, f"thread {as_repr(self.thread)}")
        begun = self.functions.setdefault(namespace, {})
        if function is None:
            number = min(set(saved).difference(begun), default=None)
        else:
            check_equal(name, filter(None, begun.values()), function)
            number = chosen(name, saved, begun, function)
            slot.note = why_new(name, saved, begun, function) if number is None else None
        if number is None:
            number = new_number(saved, begun)
        if function is not None and number in saved:
            shown = ", ".join(f"`{each}`" for each in function.go_on(saved[number].function))
            if shown:
                _LOG.warning(_EXCHANGED, name, shown)
        begun[number] = slot.function = function
        own = f"{namespace}.{number}" if number else namespace
        self.begun[own] += 1
        return own


@dataclass(eq=False)
class Slot:
    """A run of a call, and the place of the call's saved state.

    execution: The execution of the task that makes the call.
    namespace: The namespace of the call; empty if LangGraph itself has to choose it.
    shared: The namespace of the first of the calls with equal params; see `first_namespace`.
    name: The name of the call.
    is_saved: Whether the namespace has a checkpoint.
    past: The state of the call before a fork. None if this run need not copy that state.
    writes: What the saved call wrote into its caller's state (see `_core/langgraph/seen.py`).
    function: The function of the call; None if the call's task or key identifies the call.
    note: A warning for reviewers that this new call may be meant to continue a waiting call.
    running: Holds this run until the run has ended.
    before: The earlier run of the call, if that run may not have ended yet.
    is_replaced: Whether a newer run of the call has begun. Then this run must save nothing.
    """

    execution: Execution = field(default_factory=Execution)
    namespace: str = ""
    shared: str = ""
    name: str = ""
    is_saved: bool = False
    past: dict[str, Any] | None = None
    writes: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    function: Captured | None = None
    note: str | None = None
    running: Running = field(default_factory=Running)
    before: Slot | None = None
    is_replaced: bool = False

    async def take_over(self) -> None:
        """Wait until the earlier run of the call has paused or ended, and replace it."""
        before, self.before = self.before, None
        if before is not None:
            if before.running:
                _LOG.warning("an earlier run of a call still runs (%s): waiting.", self.namespace)
                await before.running.wait()
            before.is_replaced = True

    def check(self) -> None:
        """Stop this run if a newer run has replaced it, because this run's saves would be lost.

        Raises:
            ReplayMismatch: If a newer run of the call has begun.
        """
        if self.is_replaced:
            raise _replaced(self.namespace)

    def start(self) -> None:
        """Note that the call runs, until the slot is garbage or `end` is called."""
        self.running.add(self)
        self.execution.running.add(self)

    def end(self) -> None:
        """Note that the run of the call has paused or ended."""
        self.running.remove(self)
        self.execution.running.remove(self)

    async def pause(self) -> None:
        """Record that the run has paused, and wait until all calls of the task have stopped.

        Without the wait, the first pause could end the task and the process. The results of model
        calls in flight would be lost.
        """
        self.end()
        try:
            await self.execution.running.wait()
        except CancelledError:
            _LOG.warning(
                "the pause of a call (%s) was cancelled while it waited for other calls of its "
                "node: its review is saved, and is shown when the node makes the call again. To "
                "limit the time of a call, use `timeout=` and not `asyncio.wait_for`.",
                self.namespace,
            )
            raise

    @contextmanager
    def ended_by_errors(self) -> Generator[None, None, None]:
        """Record that the run has ended if the `with` block raises an error."""
        with ExitStack() as on_error:
            on_error.callback(self.end)
            yield
            on_error.pop_all()

    @contextmanager
    def parked(self) -> Generator[None, None, None]:
        """Count the run as not running while the reader of its stream handles a part.

        If the reader raises an error, the run has ended, and is not counted again.
        """
        self.end()
        yield
        self.start()


def _replaced(namespace: str) -> ReplayMismatch:
    return ReplayMismatch(
        f"the node of this call ({namespace}) had ended, and was run again meanwhile: the newer "
        "run makes the call. Await all calls of a node before it ends."
    )
