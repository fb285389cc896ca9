"""Find the saved state of a call among the calls of one task.

LangGraph numbers the subgraphs that a task invokes, in the order in which they start. If the order
changes, a call would find the state of a different call. Therefore this module builds the namespace
of a call from its identity (see `_state/identity.py`) and, if the task makes equal calls, a number.

The number counts equal calls within one execution of the task. An execution is one scratchpad and
one attempt of the node, because a retry policy runs a node again with the same scratchpad.
(Observed by printing both in a node that fails.)
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from langgraph.checkpoint.base import BaseCheckpointSaver

from graph_retry._functions.awaiting import sleep
from graph_retry._langgraph.checkpoints import (
    check_clock,
    is_saved,
    list_checkpoints,
    namespaces_in,
    newest_checkpoint,
    place_of,
    read_checkpoint,
    waits_for,
)
from graph_retry._langgraph.fork import past_of
from graph_retry._langgraph.open_reviews import has_table, waiting_in
from graph_retry._langgraph.run_config import (
    may_be_resumed,
    node_attempt,
    saves_later,
    scratchpad_in,
)
from graph_retry._langgraph.shown import questions_of
from graph_retry._params.patch import Encoded
from graph_retry._state.attempts import records_in
from graph_retry._state.identity import Made, body_of, changed_fields, first_params
from graph_retry._state.namespaces import are_namesakes, call_namespace_of, namesakes
from graph_retry._state.position import ANSWER

_LOG = logging.getLogger("graph_retry")

_PATIENCE = 60.0
"""Seconds that a pausing call waits for the other calls of its task. The wait is limited because
one of them may wait for this call. A model call still in flight then is made again on resume."""

_ANCHORED = 5.0
"""Seconds that a call waits until the checkpoint that its task began from is saved. The wait is
limited because LangGraph may fail to save, and raises that error only after its tasks ended."""


@dataclass(frozen=True)
class Slot:
    """The namespace of a call's state, with facts about the calls of the same execution.

    is_saved: Whether the namespace has a checkpoint.
    past: The state of the call before a fork. None if this run need not copy that state.
    note: A warning for reviewers that this new call may be meant to continue a waiting call.
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

        Under `asyncio.gather`, the first call that pauses ends the task. The result of a model call
        that still runs would be lost, and a resume would make the model call again.
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
    is_anchored: Whether the checkpoints that the task began from are saved.
    """

    begun: Counter[str] = field(default_factory=Counter[str])
    bodies: dict[str, set[Any]] = field(default_factory=lambda: defaultdict(set[Any]))
    params_of_key: dict[tuple[str, str], Encoded] = field(default_factory=dict[Any, Encoded])
    running: WeakSet[Future[None]] = field(default_factory=WeakSet[Future[None]])
    is_anchored: bool = False


_lock = threading.Lock()
_executions: WeakKeyDictionary[Any, dict[int, _Execution]] = WeakKeyDictionary()


async def find_slot(
    made: Made, configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any] | None
) -> Slot | None:
    """Return the slot of a call's state, or None if LangGraph itself has to choose its namespace.

    Raises:
        ValueError: If the key of the call also names a call with other params.
    """
    scratchpad = scratchpad_in(configurable)
    if saver is None or scratchpad is None:
        return None
    # Sync calls of one node may begin in several threads at once. The lock keeps them in order.
    with _lock:
        # A retry policy runs a node again with the same scratchpad, so executions may share it.
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
    name = made.name
    before = records_in(saved.checkpoint["channel_values"]) if made.is_task and saved else []
    # The task's own namespace holds a different call, so this task makes several calls. This call
    # then gets a namespace by its identity.
    if before and before[-1].get("name", name) != name:
        with _lock:
            execution.begun[namespace] -= 1
            made = replace(made, is_task=False)
            namespace = _begun(made, execution, configurable["checkpoint_ns"])
        saved = await newest_checkpoint(saver, thread_id, namespace)
    await check_clock(saved)
    # The first step copies the past state. After a crash before that step, it is still needed.
    if may_be_saved and not (saved and ANSWER in saved.checkpoint["channel_values"]):
        past = await past_of(configurable, saver, made, namespace)
        if past is None and made.key is None and not made.is_task:
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
    # For a `@task`, the map names one checkpoint under two namespaces. One of them holds it.
    for same in places.values():
        pause, waited = 0.001, 0.0
        while waited < _ANCHORED and not any([await is_saved(saver, place) for place in same]):
            await sleep(pause)
            pause, waited = min(2 * pause, 0.1), waited + pause


def _begun(made: Made, execution: _Execution, task: str) -> str:
    """Count a call that begins, and return its namespace. A lone call gets the task's namespace."""
    identity: str | None = None
    if not made.is_task or execution.begun[task]:
        # If user code passes its config to several retry nodes, each looks like the task itself.
        made = replace(made, is_task=False) if made.is_task else made
        identity = made.identity
    if identity is None or made.params is None:
        execution.begun[task] += 1
        return task
    name, key = made.name, made.key
    known = execution.params_of_key.setdefault((name, key), made.params) if key else made.params
    if known != made.params:
        raise ValueError(
            f"`key={key!r}` names two calls of `{name}` with different params in one node: give "
            "each call a key of its own."
        )
    namespace = call_namespace_of(task, name, identity)
    bodies, body = execution.bodies[namespace], body_of(made.llm_call)
    if len(bodies) == 1 and body not in bodies:
        # A warning is enough, because a new version of the same function has a different body as
        # well, and must still find its calls.
        _LOG.warning(
            "two calls of `%s` in this node have equal params and different functions, so only "
            "their order distinguishes them: give each call a `name=` or `key=` of its own.",
            name,
        )
    bodies.add(body)
    number = execution.begun[namespace]
    own = call_namespace_of(task, name, identity, number) if number else namespace
    execution.begun.update({namespace, own})
    return own


async def _note_changed(
    made: Made,
    execution: _Execution,
    configurable: Mapping[str, Any],
    saver: BaseCheckpointSaver[Any],
) -> str | None:
    """Warn if a new call may be meant to be a saved call of its name; return the warning.

    This changes no result, because a loop, a new version of the node and parallel calls look alike.
    """
    thread_id, name = str(configurable["thread_id"]), made.name
    start = namesakes(configurable["checkpoint_ns"], name)
    differences: list[str] = []
    for namespace in await namespaces_in(saver, thread_id, start):
        # A call inside a call of this name has a longer namespace, and is no namesake.
        if execution.begun[namespace] or not are_namesakes(namespace, start):
            continue
        newest = await newest_checkpoint(saver, thread_id, namespace)
        made_with = newest and first_params(newest.checkpoint["channel_values"], "params")
        if made_with is not None:
            differences.append(changed_fields(made_with, made.params))
    if not differences:
        return None
    note = (
        f"an earlier run of this node made a call of `{name}` with other params (they differ in "
        f"{min(differences, key=len)}), which this run has not made so far; if both are meant to "
        "be the same call, whose params change from run to run, give it a `key=` that stays the "
        "same, such as the id of what it works on"
    )
    _LOG.warning("`%s` makes a new call: %s.", name, note)
    return note


async def tell_ended_by_input(saver: BaseCheckpointSaver[Any], thread_id: str | None) -> None:
    """Warn of open reviews that the thread's newest input ended; they cannot be answered now."""
    if has_table(saver) and not await waiting_in(saver, thread_id or ""):
        return
    inputs = await list_checkpoints(saver, place_of(thread_id), filter={"source": "input"}, limit=1)
    head = inputs[0].parent_config if inputs else None
    before = await read_checkpoint(saver, head) if head else None
    for question in questions_of(before):
        call = await newest_checkpoint(saver, thread_id, question.get("checkpoint_ns", ""))
        if call is not None and waits_for(call, question.get("review_id")):
            tell_ended(question["review_id"], question["function_name"], thread_id)


@lru_cache(maxsize=1_000)
def tell_ended(review_id: str, name: str, thread_id: str | None) -> None:
    """Warn that a thread's new input has ended an open review; once for each review."""
    _LOG.warning(
        "review %s of `%s` (thread %r) was ended unanswered: the thread was given a new input; "
        "answer with `resume` before a thread is run with an input again",
        *(review_id, name, thread_id),
    )
