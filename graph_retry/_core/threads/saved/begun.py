"""How a thread stands that a job may have started before."""

from __future__ import annotations

from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from graph_retry._core.langgraph.shown import interventions, result_at
from graph_retry._core.threads.saved.graphs import get_state
from graph_retry._core.threads.saved.reading import open_questions


class Begun(NamedTuple):
    """What to do with a thread: `given` is the input of its next run.

    If it `waits` for people, it is left alone, and `state` is what a run would return.
    """

    given: Any = None
    waits: bool = False
    state: Any = None


async def begun(graph: Any, config: RunnableConfig, start: Any) -> Begun:
    """Look at a locked thread: it is new, waits for people, was cut off, or is over."""
    state = await get_state(graph, config)
    if state.created_at is None:
        return Begun(given=start)
    if not await _waits(graph, config, state):
        return Begun()
    return Begun(waits=True, state=result_at(state))


async def _waits(graph: Any, config: RunnableConfig, state: StateSnapshot) -> bool:
    """Return whether nothing is left to run before people answer.

    A saved answer that no run has applied is left to run, and so is a branch that was cut off.
    """
    if not all(task.interrupts or task.result is not None for task in state.tasks):
        return False
    asked = {value["review_id"] for _, value in interventions(state.interrupts)}
    open_now = {each.review_id for each in await open_questions(graph, config)}
    return bool(state.interrupts) and asked <= open_now
