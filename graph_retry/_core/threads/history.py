"""Read the ledgers of threads, and export them to files. A ledger has all attempts of one call."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic_core import to_jsonable_python

from graph_retry._core.ground.functions.arguments import async_twin, checked, in_sync
from graph_retry._core.ground.functions.awaiting import arun_steps, each_of, run_steps
from graph_retry._core.ground.json import is_array, is_object, json_lines, replacing
from graph_retry._core.ground.wording import passed_as
from graph_retry._core.langgraph.storage.checkpoints import thread_id_of
from graph_retry._core.state.attempts import check_version
from graph_retry._core.threads.saved.graphs import (
    check_compiled,
    get_state,
    is_client,
    is_remote,
    saver_of,
    thread_of,
)
from graph_retry._core.threads.saved.ledgers import read_ledgers, whole_ledgers
from graph_retry._core.threads.saved.one_call import Ledger
from graph_retry._core.threads.server.server_reviews import places_on
from graph_retry.lossless._ground import as_repr
from graph_retry.records import SCHEMA_VERSION, Attempt

LedgerSource = Any
"""A source of ledgers: a compiled graph with its checkpointer, a checkpointer, a client of
`langgraph_sdk`, the path of a file of `export_ledgers`, or one or more ledgers.
"""

_FIELDS = Attempt.__required_keys__ - {"name", "kept_in"}  # Old exports lack these two keys.

_TOLD = ("namespace", "root", "thread", "current", "waits", "ended_by")
"""The fields of a ledger, besides its attempts, that an export contains."""


@in_sync
async def attempts_of(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read the ledgers of a thread, oldest first. A ledger has all attempts of one call.

    The calls may be running, paused, finished or cancelled. The result includes the calls of
    functions and of retry nodes, the calls in subgraphs and `Send` branches, and the calls of
    earlier runs and forks. `graph` is a compiled graph, a `RemoteGraph` or a checkpointer.

    A server shows only the newest 1,000 checkpoints of a graph. A call of a function is shown on
    two conditions. The state of the outermost graph declares the key `attempts` (your code need not
    write it). And a call of the same name has asked a person in the same node. For an
    `@entrypoint`, or with LangGraph 1.2.20, a server shows no calls of functions. A `UserWarning`
    names hidden calls.

    If checkpoints were deleted, the result may lack facts. While a call has not ended, an earlier
    attempt whose checkpoint was deleted has only its number. If the checkpoint from which a call
    was made is gone, `current` is False only if a fork is known to have continued the call.
    Otherwise it is True, perhaps wrongly.

    Raises:
        TypeError: If `config` is not a config.
        ValueError: If `config` names no thread.

    Example:
        >>> from graph_retry import edit, resume
        >>> from graph_retry.testing import waiting_thread
        >>> graph, config = waiting_thread()
        >>> resume(graph, config, edit(value="3"))
        3
        >>> (ledger,) = attempts_of(graph, config)
        >>> [attempt["author"] for attempt in ledger.attempts], ledger.params_diff(2)
        (['caller', 'human'], [{'path': '/value', 'before': 'many', 'after': '3'}])
    """
    return await thread_ledgers(graph, config)


aattempts_of = async_twin(attempts_of)


async def thread_ledgers(graph: Any, config: RunnableConfig) -> list[Ledger]:
    """Read the ledgers of a thread. Warn about calls whose attempts a server hides."""
    thread = thread_of(config)
    if saver_of(graph) is None:  # If `graph` is a checkpointer, the ledgers are read from it.
        check_compiled(graph)
    calls = await read_ledgers(graph, config)
    empty = [ledger for ledger in calls if not ledger.attempts]
    if empty and is_remote(graph):
        snapshot = await get_state(graph, config)
        runs = tuple(f"{task.name}:{task.id}" for task in snapshot.tasks if not task.interrupts)
        hidden = [ledger.title for ledger in empty if not ledger.namespace.startswith(runs)]
        if hidden:
            warnings.warn(
                f"the server hides the attempts of these calls: {', '.join(hidden)}. Add the "
                "key `attempts` to the state of the outermost graph (nothing needs to write "
                "it), or read them through the checkpointer.",
                stacklevel=6,
            )
    shown = [ledger for ledger in calls if ledger.attempts]
    return [replace(ledger, thread=thread) for ledger in await whole_ledgers(graph, thread, shown)]


@checked
def every_ledger(source: LedgerSource, *, threads: Iterable[str] | None = None) -> Iterator[Ledger]:
    """Yield the ledgers of all threads. Only one thread at a time is in memory.

    Args:
        source: A graph with its checkpointer, a checkpointer, a client of `langgraph_sdk` (for the
            threads that the server shows), the path of exported ledgers, or one or more ledgers.
        threads: The ids of the threads to read. By default, a list of all checkpoints is read to
            find all threads. PostgreSQL's checkpointers hold this list in memory: for a large
            database, pass the result of `SELECT DISTINCT thread_id FROM checkpoints` instead.

    Raises:
        TypeError: If `source` is of another kind.
        ValueError: If `source` is a file with a line that is not a ledger.

    Example:
        >>> [ledger.outcome for ledger in every_ledger([Ledger([])])]
        ['open']
    """
    return run_steps(ledgers_in(source, threads))


@checked
def aevery_ledger(
    source: LedgerSource, *, threads: Iterable[str] | None = None
) -> AsyncIterator[Ledger]:
    """Do the same as `every_ledger`, in async code."""
    return arun_steps(ledgers_in(source, threads))


async def ledgers_in(
    source: LedgerSource, threads: Iterable[str] | None = None
) -> AsyncGenerator[Ledger]:
    """Yield the ledgers of a source. Run this generator with `run_steps` or `arun_steps`."""
    if saver_of(source) is not None or is_client(source):
        for graph, config in await _places_in(source, threads):
            for ledger in await thread_ledgers(graph, config):
                yield ledger
    else:
        for ledger in _given_ledgers(source, threads):
            yield ledger


async def _places_in(
    source: Any, threads: Iterable[str] | None
) -> Iterable[tuple[Any, RunnableConfig]]:
    """Return the threads of a source, each with its graph or checkpointer and with a config."""
    saver, wanted = saver_of(source), None if threads is None else dict.fromkeys(threads)
    if saver is None:
        places = await places_on(source)
        return [each for each in places if wanted is None or thread_of(each[1]) in wanted]
    names = await _threads_of(saver) if wanted is None else wanted
    return ((source, {"configurable": {"thread_id": name}}) for name in names)


async def _threads_of(saver: BaseCheckpointSaver[Any]) -> list[str]:
    listed = each_of(saver.list, saver.alist, None)
    return sorted({str(thread_id_of(saved)) async for saved in listed})


def _given_ledgers(source: Any, threads: Iterable[str] | None) -> Iterator[Ledger]:
    wanted = None if threads is None else set(threads)
    if isinstance(source, str | Path):
        source = _exported_in(source)
    elif isinstance(source, Ledger):
        source = [source]
    elif not isinstance(source, Iterable):
        raise TypeError(
            f"`source` is {type(source).__name__}: give a compiled graph with a checkpointer, a "
            "checkpointer, a client of `langgraph_sdk`, the path of exported ledgers, or "
            "ledgers."
        )
    for ledger in map(checked_ledger, cast("Iterable[Any]", source)):
        if wanted is None or ledger.thread in wanted:
            yield ledger


def checked_ledger(item: Any) -> Ledger:
    """Return `item`; raise `TypeError` if it is not a ledger."""
    if not isinstance(item, Ledger):
        raise TypeError(
            f"`source` has {as_repr(item, 80)}, which is not a ledger: give ledgers, such as "
            "those of `attempts_of`."
        )
    return item


@checked
def export_ledgers(
    ledgers: Iterable[Ledger],
    path: str | Path,
    redact: Callable[[Attempt], Attempt] | None = None,
) -> None:
    """Write ledgers to a JSON Lines file: one ledger per line, with the version of its schema.

    Args:
        ledgers: The ledgers, such as those of `attempts_of`, or `[Ledger(error.attempts)]`.
        path: The file to write. An existing file is replaced.
        redact: A function that gets a copy of each attempt, and returns it without private data.

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
    with replacing(path) as file:
        for ledger in ledgers:
            attempts = copy.deepcopy(ledger.attempts)
            if redact is not None:
                with passed_as("redact"):
                    attempts = list(map(redact, attempts))
                if problem := _problem_in(attempts):
                    raise ValueError(
                        f"`redact` returned {problem}: return the attempt with all its fields."
                    )
            line = {
                "graph_retry_ledger": SCHEMA_VERSION,
                **{name: getattr(ledger, name) for name in _TOLD},
                "attempts": attempts,
            }
            file.write(json.dumps(line, default=to_jsonable_python) + "\n")


@checked
def import_ledgers(path: str | Path) -> list[Ledger]:
    """Read the ledgers in a file that `export_ledgers` wrote with this or an older version.

    Raises:
        ReplayMismatch: If a newer version wrote the file.
        ValueError: If a line is not a ledger. The message names the line's number.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "ledgers.jsonl")
        ...     export_ledgers([Ledger([])], path)
        ...     [len(ledger.attempts) for ledger in import_ledgers(path)]
        [0]
    """
    return list(_exported_in(path))


def _exported_in(path: str | Path) -> Iterator[Ledger]:
    for place, entry in json_lines(path, "`export_ledgers`"):
        yield _exported(entry, place)


def _problem_in(attempts: list[Any]) -> str | None:
    """Describe the first item of a list that is not a complete attempt, or return None."""
    for attempt in attempts:
        if not is_object(attempt):
            return f"{as_repr(attempt, 80)} instead of an attempt"
        if missing := sorted(_FIELDS - attempt.keys()):
            return f"an attempt without `{missing[0]}`"
    return None


def _exported(entry: Any, place: str) -> Ledger:
    version: Any = entry.get("graph_retry_ledger") if is_object(entry) else None
    if type(version) is not int or not is_array(entry.get("attempts")):
        raise ValueError(f"{place} is not an exported ledger: give a file of `export_ledgers`.")
    check_version([cast("Attempt", {"schema_version": version})])
    if problem := _problem_in(entry["attempts"]):
        raise ValueError(f"{place} has {problem}: export it again.")
    told = {name: entry[name] for name in _TOLD if name in entry}  # Old exports lack some keys.
    return Ledger(entry["attempts"], **told)
