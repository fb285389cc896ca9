"""Decide how to run a thread that may have run before, for the argument `start` of `resume`."""

from __future__ import annotations

from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from graph_retry._core.langgraph.open_questions import interventions, result_at
from graph_retry._core.threads.saved.graphs import get_state
from graph_retry._core.threads.saved.thread_state import open_questions


class Begun(NamedTuple):
    """How to run a thread that may have run before.

    given: The input of the next run; None if the thread continues where it stopped.
    waits: Whether the thread waits for people. In this case, it is not run.
    state: The result to return if the thread waits.
    """

    given: Any = None
    waits: bool = False
    state: Any = None


async def begun(graph: Any, config: RunnableConfig, start: Any) -> Begun:
    """Read a locked thread, and return how to run it.

    A new thread gets the input `start`. A thread that waits for people is not run. Any other thread
    continues where it stopped.
    """
    state = await get_state(graph, config)
    if state.created_at is None:
        return Begun(given=start)
    if not await _waits(graph, config, state):
        return Begun()
    return Begun(waits=True, state=result_at(state))


async def _waits(graph: Any, config: RunnableConfig, state: StateSnapshot) -> bool:
    """Return whether a thread can continue only after people have answered.

    A thread with an unapplied answer or an interrupted branch can continue at once.
    """
    if not all(task.interrupts or task.result is not None for task in state.tasks):
        return False
    asked = {value["review_id"] for _, value in interventions(state.interrupts)}
    open_now = {each.review_id for each in await open_questions(graph, config)}
    return bool(state.interrupts) and asked <= open_now
