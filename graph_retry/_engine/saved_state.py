"""What calls have saved: read from their state, also where version 1 of this library kept it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.graph import START

from graph_retry._attempts import params_at, readable, records_in
from graph_retry._engine.checkpoints import newest_checkpoint, put_writes
from graph_retry._engine.identity import Saved, identity_of
from graph_retry._engine.state import LOOP, loop_of
from graph_retry._json import is_object


def saved_call(values: Mapping[str, Any], params_key: str) -> Saved | None:
    """Return what the call with this state is known by, or None if it is not a call's state."""
    values = values.get(START) or values  # of one cut off at once the input alone
    loop, attempts = loop_of(values), readable(records_in(values))
    first = params_at(attempts, 1)
    params: Any = loop["given"] or (first and first.view) or values.get(params_key)
    if LOOP not in values and params is None:
        return None
    types = loop["types"] if first is None else first.types
    waits = loop["review"] is not None
    return Saved(loop["identity"] or identity_of(params, types), params, waits)


async def old_calls(
    saver: BaseCheckpointSaver[Any], configurable: Mapping[str, Any], name: str
) -> list[tuple[str, Saved]]:
    """Read the function-form calls of a name that version 1 saved in this task.

    Sync ones were named by LangGraph's counter. Async ones were tasks of their own, which wrote
    their question or their result beside the graph's checkpoint.
    """
    thread, task = str(configurable["thread_id"]), str(configurable["checkpoint_ns"])
    calls: list[tuple[str, Saved]] = []

    async def read(namespace: str) -> CheckpointTuple | None:
        return await newest_checkpoint(saver, thread, namespace)

    for number in count():
        namespace = f"{task}|{number}" if number else task
        saved = await read(namespace)
        if saved is None:
            break
        calls += _call_in(namespace, saved, name)
    graph, around = task, None
    while around is None and graph:
        graph = graph.rpartition("|")[0]
        around = await read(graph)
    if around is None:
        return calls
    tasks = f"{task}|retry_llm_call:"
    writes = list(_calls_beside(around, tasks))
    for namespace in dict.fromkeys(name for _, name in writes if name.startswith(tasks)):
        calls += _call_in(namespace, await read(namespace), name)
    for task_id, namespace in writes:
        if namespace == f"{tasks}{task_id}":
            # The call asks in the name of its node from now on: its own task counts as done.
            done = [("graph_retry_done", namespace)]
            await put_writes(saver, around.config, done, task_id)
    return calls


def _call_in(
    namespace: str, saved: CheckpointTuple | None, name: str
) -> Iterator[tuple[str, Saved]]:
    """Yield the call that a checkpoint holds, with its namespace, if it is of this name."""
    values = saved.checkpoint["channel_values"] if saved else {}
    values = values.get(START) or values
    call = saved_call(values, "params") if LOOP in values else None
    attempts = records_in(values)
    if call is not None and (not attempts or attempts[-1].get("name", name) == name):
        yield namespace, call


def _calls_beside(saved: CheckpointTuple, tasks: str) -> Iterator[tuple[str, str]]:
    """Yield tasks that ended as a call or asked in its name, and the namespace of the call."""
    writes: Any = saved.pending_writes or ()
    for task_id, channel, value in writes:
        if is_object(value) and LOOP in value:
            yield "", f"{tasks}{task_id}"
        questions: Any = value if channel == INTERRUPT else ()
        for question in questions:
            asked: dict[str, Any] = question.value if is_object(question.value) else {}
            yield task_id, str(asked.get("checkpoint_ns"))
