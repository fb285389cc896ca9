"""The state of a thread that a job may have started before."""

from __future__ import annotations

from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from graph_retry._core.langgraph.shown import interventions, result_at
from graph_retry._core.threads.saved.graphs import get_state
from graph_retry._core.threads.saved.reading import open_questions


class Begun(NamedTuple):
    """The state of a thread. `given` is the input of its next run.

    If the thread `waits` for people, it is not run, and `state` is returned as the result.
    """

    given: Any = None
    waits: bool = False
    state: Any = None


async def begun(graph: Any, config: RunnableConfig, start: Any) -> Begun:
    """Read a locked thread: is it new, waiting for people, interrupted, or finished?"""
    state = await get_state(graph, config)
    if state.created_at is None:
        return Begun(given=start)
    if not await _waits(graph, config, state):
        return Begun()
    return Begun(waits=True, state=result_at(state))


async def _waits(graph: Any, config: RunnableConfig, state: StateSnapshot) -> bool:
    """Say whether nothing is left to run before people answer.

    A saved answer that no run has applied, and an interrupted branch, are still left to run.
    """
    if not all(task.interrupts or task.result is not None for task in state.tasks):
        return False
    asked = {value["review_id"] for _, value in interventions(state.interrupts)}
    open_now = {each.review_id for each in await open_questions(graph, config)}
    return bool(state.interrupts) and asked <= open_now
