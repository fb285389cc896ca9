"""Find the saved state of a call among the calls of one task.

LangGraph numbers the subgraphs that a task invokes, in the order in which they start. If the order
changes, a call would find the state of a different call. Therefore this module builds the namespace
of a call from its identity (see `_identity.py`) and, if the task makes equal calls, a number.

The number counts equal calls within one execution of the task. An execution is one scratchpad and
one attempt of the node, because a retry policy runs a node again with the same scratchpad.
(Observed by printing both in a node that fails.)
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

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from graph_retry._attempts import records_in
from graph_retry._awaiting import sleep
from graph_retry._identity import body_of, changed_fields, first_params, identity_of
from graph_retry._json import is_object
from graph_retry._langgraph.checkpoints import check_clock, is_saved, newest_checkpoint
from graph_retry._langgraph.fork import Begun, past_of
from graph_retry._langgraph.open_reviews import has_table, waiting_in
from graph_retry._langgraph.run_config import (
    may_be_resumed,
    node_attempt,
    saver_in,
    saves_later,
    scratchpad_in,
)
from graph_retry._langgraph.shown import questions_of
from graph_retry._namespaces import are_namesakes, call_namespace_of, namesakes
from graph_retry._params.codec import Encoded, ParamsCodec
from graph_retry._params.fields import fields_of
from graph_retry._state import ANSWER, LOOP, Loop, fresh_loop
from graph_retry.options import Settings

_LOG = logging.getLogger("graph_retry")

_PATIENCE = 60.0
"""Seconds that a pausing call waits for the other calls of its task. The wait is limited because
one of them may wait for this call. A model call still in flight then is made again on resume."""

_ANCHORED = 5.0
"""Seconds that a call waits until the checkpoint that its task began from is saved. The wait is
limited because LangGraph may fail to save, and raises that error only after its tasks ended."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A call that a function or a retry node is about to make.

    llm_call: The user's function.
    given: The input of the loop. The input from a function already holds encoded params.
    task_path: The path of nodes that leads to the task, without the task's id.
    is_task: Whether the task is a retry node that LangGraph runs. The call is then the task's only
        one, and can continue even if its input does not contain the params.
    """

    settings: Settings
    codec: ParamsCodec[Any]
    llm_call: Any
    given: Any
    task_path: str
    is_task: bool

    @cached_property
    def values(self) -> Mapping[str, Any] | None:
        """The input by state key; None if the input is `None` or a `Command`.

        The state of the outer graph may still hold the `attempts` of an earlier call. If that call
        ended `exhausted`, they are left out, because this call would continue after them.
        """
        if self.given is None or isinstance(self.given, Command):
            return None
        values: Mapping[str, Any] = fields_of(self.given)
        if not is_object(self.given):
            values = {key: item for key, item in values.items() if item is not None}
        status, attempts = self.settings.keys["status"], self.settings.keys["attempts"]
        if values.get(status) == "exhausted" and not _asks_for_more(values.get(attempts)):
            values = {**values, attempts: []}
        return values if values or is_object(self.given) else None

    @cached_property
    def identity(self) -> str | None:
        """The identity of the call; None if its params are not known.

        A retry node that user code invokes is identified by the params that it receives, without
        defaults, because a `default_factory` may return a new value in each run.
        """
        if self.values is None or self.params is None:
            return None
        if LOOP in self.values:
            return str(self.values[LOOP]["identity"])
        as_known = self.params if self.is_task else self.codec.given(*self._as_given(self.values))
        return identity_of(as_known)

    @cached_property
    def params(self) -> Encoded | None:
        """The encoded params that the call starts with; None if the input does not contain them.

        Raises:
            TypeError: If they cannot be encoded, and the call is not the only one of its task.
            ValueError: In the same case.
        """
        if self.values is None:
            return None
        if (loop := self.values.get(LOOP)) is not None:
            return Encoded(self.values[self.settings.keys["params"]], loop["types"])
        try:
            return self.codec.load(*self._as_given(self.values))
        except (TypeError, ValueError):
            # A saved call uses its saved params. For a new call, the `call` step raises this error.
            if not self.is_task:
                raise
            return None

    def _as_given(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
        """Return the params in the input, and their types if the input also holds an attempt."""
        keys = self.settings.keys
        attempts: Sequence[Mapping[str, Any]] = values.get(keys["attempts"]) or []
        types: dict[str, str] = attempts[-1]["params_types"] if _asks_for_more(attempts) else {}
        return values.get(keys["params"]), types

    def first_state(self, waits: Loop | None = None) -> Any:
        """Return the input for the first checkpoint: with encoded params and the call's identity.

        A later run uses the saved params. `waits` is the position of the call if it already waits.
        """
        if self.values is None or LOOP in self.values or self.params is None:
            return self.given
        loop = {**(waits or fresh_loop()), "types": self.params.types, "identity": self.identity}
        return {**self.values, self.settings.keys["params"]: self.params.view, LOOP: loop}


def _asks_for_more(attempts: Sequence[Mapping[str, Any]] | None) -> bool:
    """Return whether the last attempt of an input is still to be made, or still to be reviewed."""
    last: Mapping[str, Any] = attempts[-1] if attempts else {}
    return last.get("status") == "running" or bool(last.get("to_review"))


@dataclass(frozen=True)
class Slot:
    """The namespace of a call's state, and the other calls of the same execution.

    is_saved: Whether the namespace has a checkpoint.
    past: The state of the call before a fork, if this run still has to copy it.
    note: A sentence for reviewers: this new call may be meant to continue a waiting one.
    at_rest: A future that is done when the run of the call has ended.
    beside: The futures `at_rest` of all calls of the execution.
    """

    namespace: str
    is_saved: bool = False
    past: dict[str, Any] | None = None
    note: str | None = None
    beside: WeakSet[Future[None]] = field(default_factory=WeakSet[Future[None]])
    at_rest: Future[None] = field(default_factory=Future[None])

    def end(self) -> None:
        """Mark the run of the call as ended."""
        if not self.at_rest.done():
            self.at_rest.set_result(None)

    async def pause(self) -> None:
        """Wait until the other calls of the task have paused or ended.

        Under `asyncio.gather` the first pause ends the task. A model call in flight beside it would
        be lost, and would be made again on resume.
        """
        self.end()
        if self.beside:
            beside = map(asyncio.wrap_future, self.beside)
            await asyncio.wait([*beside], timeout=_PATIENCE)


@dataclass
class _Execution:
    """The calls that one execution of a task makes.

    begun: The number of calls that have begun, by namespace.
    bodies: The functions of equal calls (see `body_of`), by namespace.
    params_of_key: The first params of each call that has a key, by call name and key.
    asked: The namespaces of calls that wait for a person; None until they are read.
    is_anchored: Whether the checkpoints that the task began from are saved.
    """

    begun: Counter[str] = field(default_factory=Counter[str])
    bodies: dict[str, set[Any]] = field(default_factory=lambda: defaultdict(set[Any]))
    params_of_key: dict[tuple[str, str], Encoded] = field(default_factory=dict[Any, Encoded])
    running: WeakSet[Future[None]] = field(default_factory=WeakSet[Future[None]])
    asked: list[str] | None = None
    is_anchored: bool = False


_lock = threading.Lock()
_executions: WeakKeyDictionary[Any, dict[int, _Execution]] = WeakKeyDictionary()


async def find_slot(made: Made, configurable: Mapping[str, Any]) -> Slot | None:
    """Return the slot of a call's state, or None if LangGraph itself has to choose its namespace.

    Raises:
        ValueError: If its key also names a call with other params.
    """
    saver, scratchpad = saver_in(configurable), scratchpad_in(configurable)
    if saver is None or scratchpad is None:
        return None
    with _lock:
        # The scratchpad alone is not enough: a retry policy runs a node again with the same one.
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
    name = made.settings.name
    before = records_in(saved.checkpoint["channel_values"]) if made.is_task and saved else []
    if before and before[-1].get("name", name) != name:
        with _lock:
            execution.begun[namespace] -= 1
            made = replace(made, is_task=False)
            namespace = _begun(made, execution, configurable["checkpoint_ns"])
        saved = await newest_checkpoint(saver, thread_id, namespace)
    await check_clock(saved)
    # The first step copies the past. If a crash came before that step, the past is still needed.
    if may_be_saved and not (saved and ANSWER in saved.checkpoint["channel_values"]):
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
    """Wait until every graph around a task has saved the checkpoint from which the task began.

    The task's id depends on these checkpoints. If the process died before they were saved, the next
    run's task would have a different id. It would not find its calls, and would repeat them.
    """
    thread_id = str(configurable["thread_id"])
    places: dict[str, list[dict[str, str]]] = {}
    for namespace, checkpoint_id in configurable.get("checkpoint_map", {}).items():
        place = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
        places.setdefault(checkpoint_id, []).append(place)
    for same in places.values():  # A `@task` lists an id in two namespaces, but only one has it.
        pause, waited = 0.001, 0.0
        while waited < _ANCHORED and not any([await is_saved(saver, place) for place in same]):
            await sleep(pause)
            pause, waited = min(2 * pause, 0.1), waited + pause


def _begun(made: Made, execution: _Execution, task: str) -> str:
    """Count a call that begins, and return its namespace. A task's only call has the task's own."""
    identity: str | None = None
    if not made.is_task or execution.begun[task]:
        # If user code passes its config to several retry nodes, each looks like the task itself.
        made = replace(made, is_task=False) if made.is_task else made
        identity = made.identity
    if identity is None or made.params is None:
        execution.begun[task] += 1
        return task
    name, key = made.settings.name, made.settings.key
    known = execution.params_of_key.setdefault((name, key), made.params) if key else made.params
    if known != made.params:
        raise ValueError(
            f"`key={key!r}` names two calls of `{name}` with different params in one node: give "
            "each call a key of its own."
        )
    namespace = call_namespace_of(task, name, identity)
    bodies, body = execution.bodies[namespace], body_of(made.llm_call)
    if len(bodies) == 1 and body not in bodies:
        # This decides nothing, because a new version of a function has a different body as well.
        _LOG.warning(
            "two calls of `%s` in this node have equal params and different functions, so only "
            "their order distinguishes them: give each call a `name=` or `key=` of its own.",
            name,
        )
    bodies.add(body)
    own = call_namespace_of(task, name, identity, execution.begun[namespace])
    execution.begun.update({namespace, own})
    return own


async def _note_changed(
    made: Made,
    execution: _Execution,
    configurable: Mapping[str, Any],
    saver: BaseCheckpointSaver[Any],
) -> str | None:
    """Warn if a new call may be meant to continue a waiting call of its name; return the warning.

    This changes no result, because a loop, a new version of the node and parallel calls look alike.
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
        # A call inside a call of this name has a longer namespace, and is no namesake.
        is_namesake = are_namesakes(namespace, namesakes(task, name))
        if not is_namesake or execution.begun[namespace]:
            continue
        waiting = await newest_checkpoint(saver, thread_id, namespace)
        made_with = waiting and first_params(waiting.checkpoint["channel_values"], "params")
        if made_with is not None:
            differences.append(changed_fields(made_with, params.view if params else {}))
    if not differences:
        return None
    fields = ", ".join(f"`{field}`" for field in min(differences, key=len)) or "their types"
    note = (
        f"another call of `{name}` in this node waits for an answer, with other params (they "
        f"differ in {fields}); if both are meant to be the same call, whose params change from run "
        "to run, give it a `key=` that stays the same, such as the id of what it works on"
    )
    _LOG.warning("`%s` makes a new call: %s.", name, note)
    return note
