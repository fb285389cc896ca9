"""The questions of other libraries for whose answers a thread still waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Interrupt, PregelTask, StateSnapshot

from graph_retry._core.langgraph.storage.checkpoints import (
    has_answer,
    namespace_of,
    newest_checkpoint,
    place_of,
    unread,
)
from graph_retry._core.state.namespaces import task_namespace
from graph_retry._core.threads.saved.graphs import get_state, saver_of, thread_of
from graph_retry._core.threads.saved.view import ThreadView


async def add_others(
    view: ThreadView, graph: Any, config: RunnableConfig, others: Mapping[str, str]
) -> None:
    """Add questions of other libraries to a view, if the thread still waits for their answers.

    `others` has the namespaces of the questions by interrupt id.

    LangGraph shows an interrupt until its node ends. If the process dies in between, its answer is
    saved beside the checkpoint from which the node began, and no later answer counts. (Only of the
    first interrupt of a task is this known: `Interrupt.from_ns` gives the id of that one.)
    """
    saver, thread_id, state = saver_of(graph), thread_of(config), None
    if others and saver is not None:
        state = await get_state(graph, place_of(thread_id), subgraphs=True)
    for interrupt_id, place in others.items():
        if saver is None or state is None or await _waits(saver, thread_id, state, interrupt_id):
            view.add(unread(place_of(thread_id, place)))


async def _waits(
    saver: BaseCheckpointSaver[Any], thread_id: str, state: StateSnapshot, interrupt_id: str
) -> bool:
    task = None
    while (tasks := [each for each in state.tasks if _asks(each, interrupt_id)]) != []:
        task = tasks[0]
        if not isinstance(task.state, StateSnapshot):
            break
        state = task.state
    if task is None:
        return False
    namespace = namespace_of(state)
    place = task_namespace(namespace, task.name, task.id)
    if Interrupt.from_ns(None, place).id != interrupt_id:
        return True
    saved = await newest_checkpoint(saver, thread_id, namespace)
    return saved is None or not has_answer(saved, task.id)


def _asks(task: PregelTask, interrupt_id: str) -> bool:
    return any(interrupt.id == interrupt_id for interrupt in task.interrupts)
