"""Read the ledgers of a thread: every call it made, whatever became of it."""

from __future__ import annotations

import warnings
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from graph_retry.flow import Ask, Flow, adrive, drive
from graph_retry.ledger import Ledger
from graph_retry.threads.reading import is_served, read_calls


def attempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read the ledgers of a thread: live, paused, finished or cancelled, oldest call first.

    Both forms, subgraphs and `Send` branches are read from the graph's checkpointer, and so are
    the calls of earlier runs and forks. A server (`RemoteGraph`) shows function-form calls if the
    outermost graph's state has the key `attempts`; a `UserWarning` tells of others. A checkpointer
    alone will do in place of a graph.

    Example:
        >>> from graph_retry import edit, resume, retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(lambda given: given, prompt, output=int)
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> _ = count.invoke("many", config)
        >>> resume(count, config, edit(value="3"))
        3
        >>> (ledger,) = attempts_of(count, config)
        >>> [attempt["author"] for attempt in ledger.attempts], ledger.params_diff(2)
        (['caller', 'human'], [{'path': '/value', 'before': 'many', 'after': '3'}])
    """
    return drive(_told_ledgers(graph, config))


async def aattempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Do what `attempts_of` does, from async code."""
    return await adrive(_told_ledgers(graph, config))


def _told_ledgers(graph: Any, config: RunnableConfig) -> Flow[list[Ledger]]:
    """Read a thread's ledgers, and warn of those that a server does not show."""
    calls = yield from read_calls(graph, config)
    empty = [each for each in calls if not each.attempts]
    if empty and is_served(graph):
        snapshot: StateSnapshot = yield Ask(graph, "get_state", (config,))
        runs = tuple(f"{task.name}:{task.id}" for task in snapshot.tasks if not task.interrupts)
        hidden = [each.title for each in empty if not each.namespace.startswith(runs)]
        if hidden:
            warnings.warn(
                f"the server does not show the attempts of calls that were made "
                f"({', '.join(hidden)}): give the state of the outermost graph the key `attempts` "
                "(nothing needs to write it), or read them where the checkpointer is.",
                stacklevel=4,
            )
    return [ledger for ledger in calls if ledger.attempts]
