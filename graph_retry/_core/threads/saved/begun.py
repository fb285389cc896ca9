"""Decide how to run a thread that may have run before, for the argument `start` of `resume`."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, get_args

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from graph_retry._core.ground.json import is_object
from graph_retry._core.langgraph.open_questions import interventions, result_at
from graph_retry._core.review.answers import Decision, DecisionType
from graph_retry._core.threads.saved.graphs import get_state
from graph_retry._core.threads.saved.thread_state import open_questions

_LOG = logging.getLogger("graph_retry")


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
    _check_input(graph, start)
    if not await _waits(graph, config, state):
        return Begun()
    return Begun(waits=True, state=result_at(state))


def _check_input(graph: Any, start: Any) -> None:
    """Check that `start`, which is dropped now, is not meant as an answer to the thread's question.

    Raises:
        TypeError: If `start` is a decision, and the state of the graph has no key `type`.
    """
    is_decision = is_object(start) and start.get("type") in get_args(DecisionType)
    if not is_decision or "type" in graph.channels or start.keys() - Decision.__annotations__:
        return
    told = (
        "`start` is the decision `%s`, but it is the input of a new thread, and this thread has "
        "begun: to answer its question, call `resume(graph, config, decision)`"
    )
    if hasattr(graph, "builder"):
        raise TypeError(f"{told % start['type']}.")
    _LOG.warning(told, start["type"])  # The input of an entrypoint may be such a dict.


async def _waits(graph: Any, config: RunnableConfig, state: StateSnapshot) -> bool:
    """Return whether a thread can continue only after people have answered.

    A thread with an unapplied answer or an interrupted branch can continue at once.
    """
    if not all(task.interrupts or task.result is not None for task in state.tasks):
        return False
    asked = {value["review_id"] for _, value in interventions(state.interrupts)}
    open_now = {each.review_id for each in await open_questions(graph, config)}
    return bool(state.interrupts) and asked <= open_now
