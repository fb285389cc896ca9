"""Whether a thread still waits for the answer to a question of another library."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Interrupt, PregelTask, StateSnapshot

from graph_retry._core.langgraph.storage.checkpoints import (
    has_answer,
    namespace_of,
    newest_checkpoint,
    place_of,
)
from graph_retry._core.state.namespaces import task_namespace
from graph_retry._core.threads.saved.graphs import get_state, saver_of, thread_of


async def waits_for_other(graph: Any, config: RunnableConfig, interrupt_id: str) -> bool:
    """Return whether a thread waits for the answer to an interrupt that is not of graph-retry.

    LangGraph shows an interrupt until its node ends. If the process dies in between, its answer is
    saved beside the checkpoint from which the node began, and no later answer counts. (Only of the
    first interrupt of a task is this known: `Interrupt.from_ns` gives the id of that one.)
    """
    saver, thread_id = saver_of(graph), thread_of(config)
    if graph is None or saver is None:
        return True
    state, task = await get_state(graph, place_of(thread_id), subgraphs=True), None
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
