"""Find the saved state of a call among the calls of one task.

LangGraph numbers the subgraphs of a task in the order in which they start. In another order, a call
would find the state of a different call. Therefore the namespace of each call contains the call's
identity (see `_core/state/identity.py`), and equal calls get a number. An execution of a task is
recognised by LangGraph's scratchpad and the number of the node's attempt, because a retry policy
runs a node again with the same scratchpad.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointTuple,
    empty_checkpoint,
)
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.graph import START

from graph_retry._core.ground.functions.awaiting import sleep
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.ground.json import is_object
from graph_retry._core.langgraph.fork import past_calls, tell_unused
from graph_retry._core.langgraph.run_config import (
    is_sent,
    may_be_resumed,
    node_attempt,
    saves_later,
    scratchpad_in,
)
from graph_retry._core.langgraph.storage.checkpoints import (
    NO_TASK,
    check_clock,
    namespace_of,
    newest_checkpoint,
    place_of,
    put_checkpoint,
    put_writes,
    thread_id_of,
    values_of,
)
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry._core.params.patch import Encoded
from graph_retry._core.state.attempts import records_in
from graph_retry._core.state.equal_calls import EqualCalls, SavedCall
from graph_retry._core.state.execution import Execution, Slot
from graph_retry._core.state.identity import Made, changed_fields, first_params, identity_of
from graph_retry._core.state.namespaces import are_namesakes, namesakes, namespace_named, parts_of
from graph_retry._core.state.position import ANSWER, LOOP, WRITES, loop_of
from graph_retry._core.state.transitions import WITH_OUTPUT
from graph_retry.errors import ReplayMismatch

_LOG = logging.getLogger("graph_retry")

_ANCHORED = 5.0
"""The most seconds that a call waits until the checkpoint before its task is saved.

Saving may fail, and LangGraph raises that error only after its tasks have ended.
"""

_NEXT = "branch:to:"
"""The prefix of the channels by which a node of LangGraph starts the next node."""

_executions: WeakKeyDictionary[Any, dict[int, Execution]] = WeakKeyDictionary()
_making = threading.Lock()


def execution_in(configurable: Mapping[str, Any]) -> Execution | None:
    """Return the `Execution` of the running task, with its calls; None outside any thread."""
    scratchpad = scratchpad_in(configurable)
    if scratchpad is None or "thread_id" not in configurable:
        return None
    number, task = node_attempt(configurable), namespace_named(configurable)
    with _making:
        # Copies of a scratchpad, such as `run_config.inside` makes, share this function.
        attempts = _executions.setdefault(scratchpad.get_null_resume, {})
        if (execution := attempts.get(number)) is None:
            execution = Execution(task, str(configurable["thread_id"]))
            execution.is_sent = is_sent(configurable)
            # The answers of a run reach each attempt of a node that is tried again.
            execution.settled = next((each.settled for each in attempts.values()), set[str]())
            attempts[number] = execution
    return execution


async def find_slot(
    made: Made, configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any] | None
) -> Slot:
    """Return the slot of a call that begins. Without a checkpointer, the slot has no namespace.

    The order of these steps matters, because an earlier run of the node may still run and save:

    1. The slot counts as running, so that a pause elsewhere in the node waits for this call.
    2. The saved calls that are equal to this call are read. They decide its number and namespace.
    3. `begin` registers the slot as the newest run. An older execution then cannot begin this call.
    4. The call waits until the checkpoint from which its task began is saved.
    5. `take_over` waits for the earlier run of this call. Afterwards only this run saves the call.
    6. The saved state is read again, because the earlier run may have saved since step 2.

    Raises:
        ReplayMismatch: If a newer run of the node makes the call, or if another graph waits in the
            task's namespace.
        ValueError: If the key of the call also names a call with other params.
    """
    execution = None if saver is None else execution_in(configurable)
    if saver is None or execution is None:
        return Slot()
    slot = Slot(execution)
    slot.start()
    with slot.ended_by_errors():
        is_resumed, read = may_be_resumed(configurable), _Read()
        earlier = execution.earlier_run(made)
        is_over = earlier is None or not earlier.running
        execution.begin(
            slot, made, await _equal_calls(made, execution, saver, read) if is_resumed else {}
        )
        if saves_later(configurable):
            anchor = partial(_wait_for_anchor, configurable, saver)
            await execution.reads.get("anchor", anchor)
        if slot.before is not earlier or not is_over:
            read.clear()
        await slot.take_over()
        if is_resumed:
            await _find_saved(slot, made, configurable, saver, read)
    return slot


async def _find_saved(
    slot: Slot,
    made: Made,
    configurable: Mapping[str, Any],
    saver: BaseCheckpointSaver[Any],
    read: _Read,
) -> None:
    """Fill the slot with the call's saved state, or with the call's state before a fork."""
    execution, thread_id = slot.execution, slot.execution.thread
    if slot.namespace not in read:
        read[slot.namespace] = await newest_checkpoint(saver, thread_id, slot.namespace)
    saved = read[slot.namespace]
    # If the task's own namespace holds something else, this task makes several calls. This call
    # then gets a namespace by its identity.
    if made.is_task and saved is not None and not _is_of(made.name, saved):
        made = replace(made, is_task=False)
        execution.begin_beside(slot, made, await _equal_calls(made, execution, saver, read))
        await slot.take_over()
        saved = await newest_checkpoint(saver, thread_id, slot.namespace)
    await check_clock(saved)
    if saved is not None:
        saved = await _without_part(saver, saved, made.keys["status"])
    slot.is_saved = saved is not None
    values = values_of(saved) if saved else {}
    if values.get(made.keys["status"]) in (None, *WITH_OUTPUT):
        written: Any = values.get(WRITES) or []
        slot.writes = [(str(channel), value) for channel, value in written]
    # The first step copies the past state, and writes the channel `ANSWER`. If the channel is
    # missing, the process died before the first step ended, and the past state is still needed.
    if not (saved and ANSWER in saved.checkpoint["channel_values"]):
        calls = await past_calls(configurable, saver)
        if calls:
            slot.past = calls.continued_by(made, execution.task, slot.namespace)
        if slot.past is None and not made.is_task:
            if slot.note is not None:
                _LOG.warning("`%s` makes a new call: %s.", made.name, slot.note)
            else:
                with informing("the search for a saved call with other params"):
                    slot.note = await _note_changed(made, execution, saver)
    values = slot.past or (values_of(saved) if saved else {})
    place = loop_of(values)["continues"] if slot.past else slot.namespace
    with informing("the search for the question of an earlier checkpoint"):
        await tell_unused(saver, configurable, place or "", values, made.name)


async def _without_part(
    saver: BaseCheckpointSaver[Any], saved: CheckpointTuple, ended: str
) -> CheckpointTuple:
    """Make LangGraph repeat a step if the process ended when only some of its writes were saved.

    LangGraph does not repeat a step that has saved writes. Therefore this function copies the
    checkpoint without the writes. Before that, it copies a waiting answer, so that the answer is
    never lost. `ended` is the channel that the last step of a call writes last.
    """
    writes = [write for write in saved.pending_writes or () if write[0] != NO_TASK]
    steps = {task for task, channel, _ in writes if not channel.startswith("__")}
    whole = {task for task, channel, _ in writes if channel.startswith(_NEXT) or channel == ended}
    if steps <= whole:
        return saved
    copy: Checkpoint = {**saved.checkpoint, "id": empty_checkpoint()["id"]}
    thread_id, namespace = thread_id_of(saved), namespace_of(saved)
    answers = [write[1:] for write in saved.pending_writes or () if write[1] == ANSWER]
    if answers:
        await put_writes(saver, place_of(thread_id, namespace, copy["id"]), answers[:1], NO_TASK)
    place = place_of(thread_id, namespace, saved.checkpoint["id"])
    await put_checkpoint(saver, place, copy, saved.metadata)
    return await newest_checkpoint(saver, thread_id, namespace) or saved


_Read = dict[str, CheckpointTuple | None]
"""The newest checkpoint that was just read, by namespace."""


async def _equal_calls(
    made: Made, execution: Execution, saver: BaseCheckpointSaver[Any], read: _Read
) -> EqualCalls:
    """Read the saved calls that are equal to a call, by number."""
    first = execution.first_namespace(made)
    if first is None or made.key is not None:
        return {}

    async def look() -> EqualCalls:
        found: dict[int, SavedCall] = {}
        listed: list[str] | None = None
        store = store_of(saver)
        if store.knows_namespaces:
            # Without the list, the numbers are read one after the other.
            with informing("the list of the calls that are equal to a call"):
                listed = await _saved_namesakes(made.name, execution, saver, first)
        last = max(map(_number, listed or ()), default=0)
        number = 0
        # Threads may have begun the calls, so that an earlier number is not saved.
        while number <= last or (listed is None and number - 1 in found):
            namespace = f"{first}.{number}" if number else first
            newest = None
            if listed is None or namespace in listed:
                newest = await newest_checkpoint(saver, execution.thread, namespace)
            if not number:
                read[namespace] = newest
            if newest is not None:
                values: Any = newest.checkpoint["channel_values"]
                function = loop_of(values.get(START) or values)["function"]
                found[number] = SavedCall(function, is_made=bool(records_in(values)))
            number += 1
        return found

    return await execution.reads.get(f"equal {first}", look)


async def _saved_namesakes(
    name: str, execution: Execution, saver: BaseCheckpointSaver[Any], first: str = ""
) -> list[str]:
    """List the namespaces of the task's saved calls that have this name.

    The calls of an execution share the list. If `first` is given, only the namespaces that begin
    with this text are listed, and the list is read again.
    """
    store, start, is_new = store_of(saver), namesakes(execution.task, name), False

    async def look() -> list[str]:
        nonlocal is_new
        is_new = True
        return await store.namespaces(execution.thread, start)

    listed = await execution.reads.get(start, look)
    if first and not is_new:
        listed = await store.namespaces(execution.thread, first)
    return [each for each in listed if each.startswith(first)]


def _number(namespace: str) -> int:
    number = namespace.rpartition(".")[2]
    return int(number) if number.isdigit() else 0


async def _wait_for_anchor(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any]
) -> None:
    """Wait until every graph around a task has saved the checkpoint from which the task began.

    The task's id depends on these checkpoints. If the process died before they were saved, the next
    run would give the task a new id, and repeat its calls.
    """
    store, thread_id = store_of(saver), str(configurable["thread_id"])
    # For a `@task`, the map names one checkpoint under two namespaces. One of them holds it.
    places: dict[str, list[str]] = {}
    for namespace, checkpoint_id in configurable.get("checkpoint_map", {}).items():
        places.setdefault(checkpoint_id, []).append(namespace)
    for checkpoint_id, namespaces in places.items() if not store.ends_with_process else ():
        pause, waited = 0.001, 0.0
        while waited < _ANCHORED and not any(
            [await store.is_saved(thread_id, each, checkpoint_id) for each in namespaces]
        ):
            await sleep(pause)
            pause, waited = min(2 * pause, 0.1), waited + pause


def _is_of(name: str, saved: CheckpointTuple) -> bool:
    """Return whether the state in a task's namespace belongs to a call with this name.

    It may belong to another call or graph in the same node, such as the first graph of a chain.

    Raises:
        ReplayMismatch: If another graph waits there, because the node was a subgraph before.
    """
    values = saved.checkpoint["channel_values"]
    first = values.get(START, values)
    if is_object(first) and LOOP in first:
        records = records_in(values)
        return not records or records[-1].get("name", name) == name
    if any(channel == INTERRUPT for _, channel, _ in saved.pending_writes or ()):
        node = parts_of(namespace_of(saved))[-1].name
        raise ReplayMismatch(
            f"node `{node}` was a subgraph when this thread paused in it, and is the retry node of "
            f"`{name}` now, which cannot continue the subgraph. Give the node its old graph back, "
            "or finish the thread with the earlier graph. Nothing was called."
        )
    return False


async def _note_changed(
    made: Made, execution: Execution, saver: BaseCheckpointSaver[Any]
) -> str | None:
    """Warn if a new call may be meant to continue a saved call, and return the warning.

    The call remains a new call. A loop, a changed node and parallel calls look the same here.
    """
    name = made.name
    how, remedy = await (_unkeyed if made.key else _changed)(made, execution, saver)
    if not how:
        return None
    made_before = f"an earlier run of this node made a call of `{name}` with {how}"
    note = f"{made_before}, which this run has not made so far; {remedy}"
    _LOG.warning("`%s` makes a new call: %s.", name, note)
    return note


async def _unkeyed(
    made: Made, execution: Execution, saver: BaseCheckpointSaver[Any]
) -> tuple[str, str]:
    """Return how a new call with a `key` differs from a saved call without `key`, and advice."""
    start = namesakes(execution.task, made.name)
    namespace = f"{start}{identity_of(made.params)}" if made.params else start
    if execution.begun[namespace] or not await newest_checkpoint(
        saver, execution.thread, namespace
    ):
        return "", ""
    return (
        "equal params and no `key=`",
        "if both are meant to be the same call, leave the key out until this thread has ended",
    )


async def _changed(
    made: Made, execution: Execution, saver: BaseCheckpointSaver[Any]
) -> tuple[str, str]:
    """Return how a new call differs from saved calls that this run has not made, and advice."""
    start, thread_id = namesakes(execution.task, made.name), execution.thread

    async def read() -> dict[str, Encoded]:
        found: dict[str, Encoded] = {}
        for namespace in await _saved_namesakes(made.name, execution, saver):
            # A call inside a call of this name has a longer namespace, and is no namesake.
            if are_namesakes(namespace, start) and not execution.begun[namespace]:
                newest = await newest_checkpoint(saver, thread_id, namespace)
                params = newest and first_params(newest.checkpoint["channel_values"])
                if params is not None:
                    found[namespace] = params
        return found

    earlier = await execution.reads.get(f"params {start}", read)
    # Equal calls of one task have the same identity, so their params do not differ.
    equal = f"{start}{made.identity}"
    missing = [
        params
        for namespace, params in earlier.items()
        if not (execution.begun[namespace] or namespace.startswith(equal))
    ]
    if not missing:
        return "", ""
    differences = list(filter(None, (changed_fields(params, made.params) for params in missing)))
    if differences and len(differences) == len(missing):
        remedy = (
            "if both are meant to be the same call, whose params change from run to run, give it a "
            "`key=` that stays the same, such as the id of what it works on"
        )
        return f"other params (they differ in {min(differences, key=len)})", remedy
    return (
        "equal params, but under another `key=`, or under another version of graph-retry",
        "if both are meant to be the same call, give it the `key=` that it had",
    )
