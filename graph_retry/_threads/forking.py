"""Rewind a finished call: fork its thread where the call was made, and run the fork."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.remote import RemoteException
from langgraph.types import StateSnapshot

from graph_retry._going_back import REFUSED, reopened
from graph_retry._json import is_object
from graph_retry._langgraph.checkpoints import list_checkpoints, namespace_of, place_of
from graph_retry._langgraph.fork import (
    COPY,
    continued_in,
    fork_note,
    forked_config,
    put_fork,
)
from graph_retry._state import ANSWER, LOOP
from graph_retry._threads.config import thread_of
from graph_retry._threads.graphs import get_state, invoke, is_local, saver_of, update_state
from graph_retry._threads.server.runs import RemoteRuns
from graph_retry.errors import AnswerRefused
from graph_retry.ledger import Ledger


async def go_back(
    graph: Any,
    config: RunnableConfig,
    ledger: Ledger,
    answer: dict[str, Any],
    context: Any,
) -> Any:
    """Reopen a call that does not wait, apply an answer to it, and continue the thread from there.

    Raises:
        ValueError: If the checkpoint from which the call was made is gone, or the call refuses the
            answer. The thread is then as before.
    """
    head = await get_state(graph, config)
    if not ledger.namespace:  # The retry node is the outermost graph, so there is no fork.
        update = {LOOP: reopened(head.values), ANSWER: {"value": answer}}
        await update_state(graph, config, update, as_node="revise")
        return await _run(graph, config, context)
    old = await _made_from(graph, config, ledger)
    note = fork_note(ledger.root, ledger.namespace, answer)
    try:
        there, fork = await _fork(graph, config, old.config, note)
        state = await _run(graph, there, context)
    except (ValueError, RemoteException) as error:
        reason: Any = error.args[0] if error.args else ""
        text = str(reason["message"] if is_object(reason) else reason)
        if REFUSED not in text:
            raise
        await _restore(graph, config, head, context)
        raise ValueError(text) from error
    saver = saver_of(graph)
    if saver is not None and fork is not None:
        saved = await list_checkpoints(saver, config)
        # While the fork is the newest checkpoint, its step has not ended and may make the call.
        is_over = next(each for each in saved if not namespace_of(each)).checkpoint["id"] != fork
        if is_over and ledger.namespace not in continued_in(saved, fork):
            raise AnswerRefused(
                f"The thread ran on from where `{ledger.title}` was called, and did not make that "
                "call again: your change decided nothing."
            )
    return state


async def _fork(
    graph: Any, config: RunnableConfig, old: RunnableConfig, note: str
) -> tuple[RunnableConfig, str | None]:
    """Fork a thread at a checkpoint; return the next run's config, and the fork's id if local."""
    saver = saver_of(graph)
    if saver is not None:
        return config, await put_fork(saver, old, note)
    await update_state(graph, old, None, as_node=COPY)
    return forked_config(config, note), None


async def _made_from(graph: Any, config: RunnableConfig, ledger: Ledger) -> StateSnapshot:
    """Read the checkpoint of the outermost graph from which a call was made."""
    origin = place_of(thread_of(config), checkpoint_id=ledger.root)
    old: StateSnapshot | None = None
    if ledger.root:
        with suppress(RemoteException, ValueError):
            old = await get_state(graph, origin)
    if old is None or not old.next:
        raise ValueError(
            f"the call `{ledger.title}` is over and the checkpoint it was made from is gone: give "
            "the node `attempts` in its input, or call it again."
        )
    return old


async def _restore(graph: Any, config: RunnableConfig, head: StateSnapshot, context: Any) -> None:
    """Undo a fork, by a fork of the former newest checkpoint; calls that waited ask again."""
    root = head.config.get("configurable", {})["checkpoint_id"]
    there, _ = await _fork(graph, config, head.config, fork_note(root))
    if head.next:
        # The run ends as it did before the rewind. If it failed then, it fails again.
        with suppress(RemoteException):
            await _run(graph, there, context)


async def _run(graph: Any, config: RunnableConfig, context: Any) -> Any:
    if is_local(graph):
        return await invoke(graph, None, config, context=context)
    return await RemoteRuns(graph, config, context=context).answer({}, {})
