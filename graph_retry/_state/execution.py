"""Tell the calls that one execution of a task makes apart, and wait for one another.

Equal calls of one execution are numbered, in the order in which they begin. No other call depends
on an order, because a namespace holds the identity of its call (see `identity.py`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, defaultdict
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakSet

from graph_retry._functions.awaiting import SharedReads
from graph_retry._params.patch import Encoded
from graph_retry._state.identity import Made, body_of
from graph_retry._state.namespaces import call_namespace_of

_LOG = logging.getLogger("graph_retry")

_PATIENCE = 60.0
"""Seconds that a pausing call waits for the other calls of its task. The wait is limited because
one of them may wait for this call. A model call still in flight then is made again on resume."""

_lock = threading.Lock()
"""Keeps sync calls in order, which one node may begin in several threads at once."""


@dataclass
class Execution:
    """The calls that one execution of a task makes.

    task: The namespace of the task.
    reads: What the calls read of the thread that stays the same while the task runs.
    begun: The number of calls that have begun, by namespace.
    bodies: The functions of equal calls (see `body_of`), by namespace.
    params_of_key: The first params of each call that has a key, by call name and key.
    running: The calls that run now.
    at_rest: A future that is done when no call runs.
    """

    task: str
    reads: SharedReads = field(default_factory=SharedReads)
    begun: Counter[str] = field(default_factory=Counter[str])
    bodies: dict[str, set[Any]] = field(default_factory=lambda: defaultdict(set[Any]))
    params_of_key: dict[tuple[str, str], Encoded] = field(default_factory=dict[Any, Encoded])
    running: WeakSet[Any] = field(default_factory=WeakSet[Any])
    at_rest: Future[None] = field(default_factory=Future[None])

    def begin(self, made: Made) -> str:
        """Count a call that begins, and return its namespace.

        Raises:
            ValueError: If the key of the call also names a call with other params.
        """
        with _lock:
            return self._counted(made)

    def begin_beside(self, made: Made) -> str:
        """Count a call again that had got the task's namespace, where a different call is saved."""
        with _lock:
            self.begun[self.task] -= 1
            return self._counted(made)

    def _counted(self, made: Made) -> str:
        identity: str | None = None
        # A lone call gets the task's namespace.
        if not made.is_task or self.begun[self.task]:
            # If user code passes its config to several retry nodes, each looks like the task.
            made = replace(made, is_task=False) if made.is_task else made
            identity = made.identity
        if identity is None or made.params is None:
            self.begun[self.task] += 1
            return self.task
        name, key = made.name, made.key
        known = self.params_of_key.setdefault((name, key), made.params) if key else made.params
        if known != made.params:
            raise ValueError(
                f"`key={key!r}` names two calls of `{name}` with different params in one node: "
                "give each call a key of its own."
            )
        namespace = call_namespace_of(self.task, name, identity)
        self._compare_bodies(namespace, made)
        number = self.begun[namespace]
        own = call_namespace_of(self.task, name, identity, number) if number else namespace
        self.begun.update({namespace, own})
        return own

    def _compare_bodies(self, namespace: str, made: Made) -> None:
        """Warn if calls of different functions are equal.

        A warning is enough, because a new version of the same function has a different body as
        well, and must still find its calls.
        """
        bodies, body = self.bodies[namespace], body_of(made.llm_call)
        if len(bodies) == 1 and body not in bodies:
            _LOG.warning(
                "two calls of `%s` in this node have equal params and different functions, so only "
                "their order distinguishes them: give each call a `name=` or `key=` of its own.",
                made.name,
            )
        bodies.add(body)

    def start(self, call: object) -> None:
        """Note that a call runs, until it is garbage or `end` is called."""
        with _lock:
            self.running.add(call)
            if self.at_rest.done():
                self.at_rest = Future[None]()

    def end(self, call: object) -> None:
        """Note that the run of a call has ended."""
        with _lock:
            self.running.discard(call)
            if not self.running and not self.at_rest.done():
                self.at_rest.set_result(None)

    async def rest(self) -> None:
        """Wait until all calls of the task have paused or ended.

        Under `asyncio.gather`, the first call that pauses ends the task. The result of a model call
        that still runs would be lost, and a resume would make the model call again.
        """
        await asyncio.wait([asyncio.wrap_future(self.at_rest)], timeout=_PATIENCE)
