"""Read the ledgers of a thread. A ledger has all attempts of one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig

from graph_retry._core.langgraph.storage.checkpoints import source_of
from graph_retry._core.state.attempts import ledgers_in, records_in
from graph_retry._core.state.kept import whole
from graph_retry._core.state.position import LOOP, loop_of
from graph_retry._core.state.rewinding import is_reopened
from graph_retry._core.threads.saved.one_call import Ledger
from graph_retry._core.threads.saved.thread_state import read_whole, reader_of
from graph_retry._core.threads.saved.view import ThreadView

_WAITS = {"review": True, "end": False}
"""Whether a call waits for a person, by its next step. At other steps, this is unknown."""


async def read_ledgers(source: Any, config: RunnableConfig) -> list[Ledger]:
    """Read the ledgers of a thread. A call that a server hides gets an empty ledger."""
    return list(ledgers_of(await read_whole(source, config)))


async def whole_ledgers(
    source: Any, thread_id: str | None, ledgers: Sequence[Ledger]
) -> list[Ledger]:
    """Return ledgers with the complete records of all attempts whose checkpoints can be read."""
    made: list[Ledger] = []
    for ledger in ledgers:
        read = reader_of(source, thread_id, ledger.namespace)
        made.append(replace(ledger, attempts=await whole(ledger.attempts, read)))
    return made


def ledgers_of(view: ThreadView) -> Iterator[Ledger]:
    """Yield the ledger of each call in a thread, oldest call first.

    A call whose state is hidden by a server gets an empty ledger. A call that has lost its own
    checkpoints may have a ledger in the state of the outermost graph. A list in which a user's
    reducer collects the attempts of several calls is left out.
    """
    calls = sorted(view.calls(), key=lambda call: view.age(call[0]))
    head, known = view.root and view.root.checkpoint["id"], list[list[str]]()
    # A call that a fork continues is not current, unless its own root led to the newest root.
    continued = {
        loop["continues"]
        for namespace, values in calls
        if view.line.get(view.root_of(namespace), True) and not is_reopened(loop := loop_of(values))
    }
    for namespace, values in calls:
        root = view.root_of(namespace)
        # A root checkpoint that was never saved (as under `durability="exit"`) cannot be forked.
        current = view.line.get(root, namespace not in continued)
        position: Any = values[LOOP] or {}
        loop = loop_of(values)
        if is_reopened(loop) and not current:
            continue  # A rewind was refused in this fork, so the fork made no attempt.
        waits, review = _WAITS.get(position.get("next", "")), loop["review"]
        end = view.ended_unanswered.get(review["review_id"]) if review and waits else None
        ended_by: Any = source_of(end) if end else ""
        # A thread waits only for calls that were made from its newest checkpoint.
        if waits and root not in ("", head):
            waits = False if end else None
        ledger = Ledger(records_in(values), namespace, root, current, waits, ended_by)
        if ledger.attempts or values[LOOP] is None:
            known.append(_keys(ledger))
            yield ledger
    for key, records in ledgers_in(view.values("")):
        numbers = [record.get("number", 0) for record in records]
        if numbers != sorted(set(numbers)):
            continue
        ledger = Ledger(records, f"state:{key}")
        # A ledger in a node's input may end with an attempt that has not been made yet.
        if _keys(ledger) not in known and records[-1]["status"] != "running":
            yield ledger


def _keys(ledger: Ledger) -> list[str]:
    return [record["idempotency_key"] for record in ledger.attempts]
