"""Find the saved state of a call among the calls of one task, by its identity.

LangGraph numbers the graphs that a task invokes in the order in which they start. If that order
changed, a call would find the state of another. So here the namespace of a call is made of its
identity, and a number if there are equal calls in the task. These are counted per scratchpad of the
task and per attempt of its node: a retry policy runs a node again with the same scratchpad. Found
by printing both in a node that fails.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import Command

from graph_retry._attempts import records_in
from graph_retry._awaiting import sleep
from graph_retry._json import is_object
from graph_retry._langgraph.checkpoints import check_clock, is_saved, newest_checkpoint
from graph_retry._langgraph.fork import Begun, past_of
from graph_retry._langgraph.identity import changed_fields, identity_of, saved_call
from graph_retry._langgraph.open_reviews import has_table, waiting_in
from graph_retry._langgraph.run_config import (
    may_be_resumed,
    node_attempt,
    saver_in,
    saves_later,
    scratchpad_in,
)
from graph_retry._langgraph.shown import questions_of
from graph_retry._namespaces import call_namespace_of, namesakes
from graph_retry._params.codec import Encoded, ParamsCodec
from graph_retry._params.fields import fields_of
from graph_retry._state import ANSWER, LOOP, Loop, fresh_loop
from graph_retry.options import Settings

_LOG = logging.getLogger("graph_retry")

_PATIENCE = 60.0
"""Seconds that a pausing call waits for the others; one of them may be waiting for it."""

_ANCHORED = 5.0
"""Seconds a call waits at most for the checkpoint it begins from: LangGraph may fail to save it."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A call as it is made, by a function or a retry node, in a task that is at `task_path`.

    A retry node that `is_task` makes the task's only call, so its params need not be known.
    `given` is the input of the loop; a function's has encoded params already.
    """

    settings: Settings
    codec: ParamsCodec[Any]
    given: Any
    task_path: str
    is_task: bool

    @property
    def identity(self) -> str | None:
        """The identity of the call within its task and name, if its params are known.

        Code that invokes a retry node is known to give it what it gave before: what the params type
        fills in may be new in each run.
        """
        given = self.params
        if given is not None and not self.is_task and self.values and LOOP not in self.values:
            given = self.codec.given(*self._as_given(self.values))
        return given and identity_of(given, self.settings.key)

    @cached_property
    def values(self) -> Mapping[str, Any] | None:
        """The input by state key; None if the input is `None` or a `Command`."""
        if self.given is None or is_object(self.given):
            return self.given
        is_command = isinstance(self.given, Command)
        fields: Mapping[str, Any] = {} if is_command else fields_of(self.given)
        return {key: item for key, item in fields.items() if item is not None} or None

    @cached_property
    def params(self) -> Encoded | None:
        """The call's first params.

        Raises:
            TypeError: If they cannot be encoded and are not the only ones of a task.
            ValueError: The same.
        """
        if self.values is None:
            return None
        if (loop := self.values.get(LOOP)) is not None:
            return Encoded(self.values[self.settings.keys["params"]], loop["types"])
        try:
            return self.codec.load(*self._as_given(self.values))
        except (TypeError, ValueError):
            # A waiting task continues with any input; the step `call` reports a difference.
            if not self.is_task:
                raise
            return None

    def _as_given(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
        """Return the params in an input, with the types of an attempt that is given with them."""
        keys = self.settings.keys
        attempts: Sequence[Mapping[str, Any]] = values.get(keys["attempts"]) or [{}]
        last = attempts[-1]
        is_asked = last.get("status") == "running" or last.get("to_review")
        return values.get(keys["params"]), last["params_types"] if is_asked else {}

    def first_state(self, waits: Loop | None = None) -> Any:
        """Return the input as the first checkpoint is to hold it: encoded, with its identity.

        Whoever takes the call up later goes on with that, and never encodes the input again.
        `waits` is the position of a call that this input is put into.
        """
        if self.values is None or LOOP in self.values or self.params is None:
            return self.given
        loop = {**(waits or fresh_loop()), "types": self.params.types, "identity": self.identity}
        return {**self.values, self.settings.keys["params"]: self.params.view, LOOP: loop}


@dataclass(frozen=True)
class Slot:
    """Where the state of a call is, or is to be.

    `is_saved` tells that it is there; `past` is its state from before a fork. `note` tells a person
    that it may be a call which asked before, with other params. `at_rest` is to be done when its
    run has ended; `beside` has those of all calls of the same execution.
    """

    namespace: str
    is_saved: bool = False
    past: dict[str, Any] | None = None
    note: str | None = None
    beside: WeakSet[Future[None]] = field(default_factory=WeakSet[Future[None]])
    at_rest: Future[None] = field(default_factory=Future[None])

    def end(self) -> None:
        """Note that the run of the call has ended."""
        if not self.at_rest.done():
            self.at_rest.set_result(None)

    async def pause(self) -> None:
        """Wait until the other calls of the task have paused or ended as well.

        Under `asyncio.gather` the first pause ends the task, and a model call that was under way
        beside it would be lost, to be made again.
        """
        self.end()
        if self.beside:
            beside = map(asyncio.wrap_future, self.beside)
            await asyncio.wait([*beside], timeout=_PATIENCE)


@dataclass
class _Execution:
    """The calls of one execution of a task.

    `begun` counts the calls of each namespace; `params_of_key` tells what a key was used for;
    `asked` are the namespaces that asked a person before, once they were read. `is_anchored` tells
    that the checkpoints are saved which the task began from.
    """

    begun: Counter[str] = field(default_factory=Counter[str])
    params_of_key: dict[tuple[str, str], Encoded] = field(default_factory=dict[Any, Encoded])
    running: WeakSet[Future[None]] = field(default_factory=WeakSet[Future[None]])
    asked: list[str] | None = None
    is_anchored: bool = False


_lock = threading.Lock()
_executions: WeakKeyDictionary[Any, dict[int, _Execution]] = WeakKeyDictionary()


async def find_slot(made: Made, configurable: Mapping[str, Any]) -> Slot | None:
    """Return the place of a call's state, or None if LangGraph has to name it.

    Raises:
        ValueError: If its key also names a call with other params.
    """
    saver, scratchpad = saver_in(configurable), scratchpad_in(configurable)
    if saver is None or scratchpad is None:
        return None
    with _lock:
        # A retry policy runs a node again with the same scratchpad.
        known = _executions.setdefault(scratchpad.get_null_resume, defaultdict(_Execution))
        execution = known[node_attempt(configurable)]
        namespace = _begun(made, execution, configurable["checkpoint_ns"])
    if not execution.is_anchored and saves_later(configurable):
        await _wait_for_anchor(configurable, saver)
    execution.is_anchored = True
    past: dict[str, Any] | None = None
    note: str | None = None
    thread_id = str(configurable["thread_id"])
    may_be_saved = may_be_resumed(configurable)
    saved = await newest_checkpoint(saver, thread_id, namespace) if may_be_saved else None
    if made.is_task and saved and not _is_named(saved, made.settings.name):
        with _lock:
            execution.begun[namespace] -= 1
            made = replace(made, is_task=False)
            namespace = _begun(made, execution, configurable["checkpoint_ns"])
        saved = await newest_checkpoint(saver, thread_id, namespace)
    await check_clock(saved)
    # A call that was cut off at its first checkpoint does not hold its past yet.
    if may_be_saved and not (saved and ANSWER in saved.checkpoint["channel_values"]):
        name = made.settings.name
        params = None if namespace == configurable["checkpoint_ns"] else made.params
        begun = Begun(namespace, made.task_path, name, params)
        past = await past_of(configurable, saver, begun)
        if past is None and made.settings.key is None and not made.is_task:
            note = await _note_changed(made, execution, configurable, saver)
    slot = Slot(namespace, saved is not None, past, note, execution.running)
    execution.running.add(slot.at_rest)
    return slot


async def _wait_for_anchor(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any]
) -> None:
    """Wait until the checkpoints are saved that a task began from, in all graphs around it.

    The ids of tasks are made of them. Where a process died before, the task would have another id
    when it is run again, and its calls, of which some may be paid, would not be found.
    """
    thread_id = str(configurable["thread_id"])
    places: dict[str, list[dict[str, str]]] = {}
    for namespace, checkpoint_id in configurable.get("checkpoint_map", {}).items():
        place = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
        places.setdefault(checkpoint_id, []).append(place)
    for same in places.values():  # a `@task` begins at a checkpoint of the graph or of its caller
        pause, waited = 0.001, 0.0
        while waited < _ANCHORED and not await _is_any_saved(saver, same):
            await sleep(pause)
            pause, waited = min(2 * pause, 0.1), waited + pause


async def _is_any_saved(saver: BaseCheckpointSaver[Any], places: list[dict[str, str]]) -> bool:
    for place in places:
        if await is_saved(saver, place):
            return True
    return False


def _begun(made: Made, execution: _Execution, task: str) -> str:
    """Count a call that begins, and return its namespace."""
    # If code gives its config to several retry nodes, each looks like the task. Only one is.
    is_only = made.is_task and not execution.begun[task]
    identity = None if is_only else made.identity
    if is_only or made.params is None or identity is None:
        execution.begun[task] += 1
        return task
    name, key = made.settings.name, made.settings.key
    if key is not None and execution.params_of_key.setdefault((name, key), made.params) != (
        made.params
    ):
        raise ValueError(
            f"`key={key!r}` names two calls of `{name}` with different params in one node: give "
            "each call a key of its own."
        )
    namespace = call_namespace_of(task, name, identity)
    number = execution.begun[namespace]
    execution.begun[namespace] += 1
    return call_namespace_of(task, name, identity, number)


def _is_named(saved: CheckpointTuple, name: str) -> bool:
    """Return whether a call has this name, by its saved attempts."""
    records = records_in(saved.checkpoint["channel_values"])
    return not records or records[-1].get("name", name) == name


async def _note_changed(
    made: Made,
    execution: _Execution,
    configurable: Mapping[str, Any],
    saver: BaseCheckpointSaver[Any],
) -> str | None:
    """Describe a new call that may be meant to be a waiting one of the same name.

    Nothing is decided by that: a loop, a new version of the node or parallel calls look alike.
    """
    thread_id, task = str(configurable["thread_id"]), configurable["checkpoint_ns"]
    if execution.asked is None:
        if has_table(saver):
            execution.asked = await waiting_in(saver, thread_id)
        else:
            shown = questions_of(await newest_checkpoint(saver, thread_id, ""))
            execution.asked = [str(each["checkpoint_ns"]) for each in shown if each]
    name, params = made.settings.name, made.params
    differences: list[list[str]] = []
    for namespace in execution.asked:
        if not namespace.startswith(namesakes(task, name)) or execution.begun[namespace]:
            continue
        waiting = await newest_checkpoint(saver, thread_id, namespace)
        call = waiting and saved_call(waiting.checkpoint["channel_values"], "params")
        if call is not None:
            differences.append(changed_fields(call.params, params.view if params else {}))
    if not differences:
        return None
    fields = ", ".join(f"`{field}`" for field in min(differences, key=len))
    note = (
        f"another call of `{name}` in this node waits for an answer, with other params (they "
        f"differ in {fields}); if both are meant to be the same call, whose params change from run "
        "to run, give it a `key=` that stays the same, such as the id of what it works on"
    )
    _LOG.warning("`%s` makes a new call: %s.", name, note)
    return note
