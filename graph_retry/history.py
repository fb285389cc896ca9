"""Read the ledgers of a thread, whatever became of its calls; write ledgers to files and back."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from pydantic_core import to_jsonable_python

from graph_retry._attempts import check_version
from graph_retry._awaiting import run_async, run_sync
from graph_retry._json import is_array, is_object
from graph_retry._threads.calls import read_calls, whole_ledgers
from graph_retry._threads.graphs import get_state, is_remote
from graph_retry._threads.reviews import check_thread, thread_of
from graph_retry.ledger import Ledger
from graph_retry.records import SCHEMA_VERSION, Attempt

__all__ = ["aattempts_of", "attempts_of", "export_ledgers", "import_ledgers"]

_FIELDS = Attempt.__required_keys__ - {"name", "kept_in"}  # the first exports had none


def attempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read the ledgers of a thread: live, paused, finished or cancelled, oldest call first.

    Both forms, subgraphs and `Send` branches are read from the graph's checkpointer, and so are
    the calls of earlier runs and forks. A server (`RemoteGraph`) shows function-form calls if the
    outermost graph's state has the key `attempts`; a `UserWarning` tells of others. A checkpointer
    alone will do in place of a graph. An earlier attempt of an unfinished call is read from the
    checkpoint in which it is `kept_in`; where that is gone, its number is all that is known.

    Raises:
        TypeError: If `config` is no config.
        ValueError: If it names no thread.

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
    return run_sync(_told_ledgers(graph, config))


async def aattempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Do what `attempts_of` does, from async code."""
    return await run_async(_told_ledgers(graph, config))


async def _told_ledgers(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read a thread's ledgers, and warn of those that a server does not show."""
    check_thread(graph, config)
    calls = await read_calls(graph, config)
    empty = [ledger for ledger in calls if not ledger.attempts]
    if empty and is_remote(graph):
        snapshot = await get_state(graph, config)
        runs = tuple(f"{task.name}:{task.id}" for task in snapshot.tasks if not task.interrupts)
        hidden = [ledger.title for ledger in empty if not ledger.namespace.startswith(runs)]
        if hidden:
            warnings.warn(
                f"the server does not show the attempts of calls that were made "
                f"({', '.join(hidden)}): give the state of the outermost graph the key `attempts` "
                "(nothing needs to write it), or read them where the checkpointer is.",
                stacklevel=4,
            )
    shown = [ledger for ledger in calls if ledger.attempts]
    return await whole_ledgers(graph, thread_of(config), shown)


def export_ledgers(
    ledgers: Iterable[Ledger],
    path: str | Path,
    redact: Callable[[Attempt], Attempt] | None = None,
) -> None:
    """Write ledgers to a file, one a line, each with its schema version.

    Args:
        ledgers: What `attempts_of` returns, or `[Ledger(error.attempts)]`.
        path: The file; an older one is replaced.
        redact: Returns each attempt as it may be written; it gets a copy.

    Example:
        >>> import os, tempfile
        >>> from graph_retry import InterventionRequired, retry_llm_call
        >>> try:
        ...     retry_llm_call(lambda params: "no", {"prompt": "secret"}, output=int)
        ... except InterventionRequired as error:
        ...     ledger = Ledger(error.attempts)
        >>> def redact(attempt):
        ...     return {**attempt, "params_patch": [], "params_types": {}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "ledgers.jsonl")
        ...     export_ledgers([ledger], path, redact)
        ...     (again,) = import_ledgers(path)
        >>> again.at(1)["raw"], again.params_at(1)
        ({'text': 'no'}, {})
    """
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for ledger in ledgers:
            attempts = copy.deepcopy(ledger.attempts)
            line = {
                "graph_retry_ledger": SCHEMA_VERSION,
                "namespace": ledger.namespace,
                "waits": ledger.waits,
                "attempts": attempts if redact is None else list(map(redact, attempts)),
            }
            file.write(json.dumps(line, default=to_jsonable_python) + "\n")


def import_ledgers(path: str | Path) -> list[Ledger]:
    """Read what `export_ledgers` wrote, with this version or an earlier one.

    Raises:
        ReplayMismatch: If a newer version wrote it.
        ValueError: If a line is no ledger; it is named by its number.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "ledgers.jsonl")
        ...     export_ledgers([Ledger([])], path)
        ...     [len(ledger.attempts) for ledger in import_ledgers(path)]
        [0]
    """
    ledgers: list[Ledger] = []
    with Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                ledgers.append(_exported(line, f"line {number} of {path}"))
    return ledgers


def _exported(line: str, place: str) -> Ledger:
    try:
        entry: Any = json.loads(line)
    except ValueError as error:
        raise ValueError(
            f"{place} is no JSON ({error}): pass a file of `export_ledgers`."
        ) from None
    version: Any = entry.get("graph_retry_ledger") if is_object(entry) else None
    if type(version) is not int or not is_array(entry.get("attempts")):
        raise ValueError(f"{place} is no exported ledger: pass a file of `export_ledgers`.")
    check_version([cast("Attempt", {"schema_version": version})])
    for attempt in entry["attempts"]:
        missing = sorted(_FIELDS - attempt.keys()) if is_object(attempt) else ["everything"]
        if missing:
            raise ValueError(f"{place} has an attempt without `{missing[0]}`: export it again.")
    waits: bool | None = entry.get("waits")
    return Ledger(entry["attempts"], str(entry.get("namespace", "")), waits=waits)
