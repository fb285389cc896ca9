"""Read the saved state of a thread from its checkpointer or from a server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Interrupt, PregelTask, StateSnapshot

from graph_retry._core.ground.json import is_object
from graph_retry._core.langgraph.open_questions import namespace_in
from graph_retry._core.langgraph.storage.checkpoints import (
    has_answer,
    list_checkpoints,
    namespace_of,
    newest_checkpoint,
    place_of,
    record_place,
    saved_at,
    unread,
)
from graph_retry._core.state.kept import Reader
from graph_retry._core.state.namespaces import is_of_other, task_namespace, tasks_around
from graph_retry._core.threads.saved.graphs import (
    get_state,
    is_remote,
    may_make,
    saver_of,
    shows,
    thread_of,
)
from graph_retry._core.threads.saved.view import Asked, ThreadView
from graph_retry.records import KeptIn


async def open_questions(graph: Any, config: RunnableConfig) -> list[Asked]:
    """Return the questions of a thread that can be answered, in the order of the tasks."""
    shown: StateSnapshot | None = None
    if saver_of(graph) is not None:
        # A saver does not know the order of the branches of a `Send`.
        shown = await get_state(graph, place_of(thread_of(config), ""))
    view = await read_shown(graph, config, shown)
    return [asked for asked in view.asked() if asked.is_open]


async def open_named(
    graph: Any, config: RunnableConfig, named: Collection[str] | None
) -> tuple[ThreadView, list[Asked]]:
    """Read a thread's open questions with the ids `named`, or all questions if it is None.

    A thread may have a thousand questions, so only the named questions are read. If a named
    question is not open, all questions are read.
    """
    view = await read_shown(graph, config, named=named)
    questions = [asked for asked in view.asked() if asked.is_open]
    known = {name for asked in questions for name in (asked.review_id, asked.interrupt_id)}
    if named is not None and not known.issuperset(named):
        return await open_named(graph, config, None)
    return view, questions


async def read_shown(
    graph: Any,
    config: RunnableConfig,
    shown: StateSnapshot | None = None,
    *,
    named: Collection[str] | None = None,
) -> ThreadView:
    """Read the questions that a thread shows, and the newest checkpoint of each call that asks one.

    `named` restricts the questions to some interrupt ids or review ids.
    """
    saver, thread_id = saver_of(graph), thread_of(config)
    if saver is None:
        from graph_retry._core.threads.server.server_threads import read_shown_there  # noqa: PLC0415

        return await read_shown_there(graph, config)
    if shown is None:
        view = await read_newest(saver, thread_id, [""])
    else:
        view = ThreadView(shown.interrupts, shown.created_at)
    others: dict[str, str] = {}
    for interrupt, value, _ in view.questions:
        if named is not None and not {interrupt.id, value["review_id"]}.intersection(named):
            continue
        namespace = namespace_in(value)
        if is_of_other(namespace):
            others[interrupt.id] = namespace
            continue
        call = await newest_checkpoint(saver, thread_id, namespace)
        if call is not None and may_make(graph, namespace):
            view.add(call)
            await _add_newest(view, saver, thread_id, (each for each, _ in tasks_around(namespace)))
        # Without the call's checkpoint, only LangGraph knows who asks the question.
        elif call is None and (shown is not None or await shows(graph, config, interrupt.id)):
            view.add(unread(place_of(thread_id, namespace)))
    await add_others(view, graph, config, others)
    return view


async def read_newest(
    saver: BaseCheckpointSaver[Any], thread_id: str, namespaces: Collection[str]
) -> ThreadView:
    """Read the newest checkpoint of each namespace, and of the subgraphs around it."""
    view = ThreadView()
    for namespace in namespaces:
        around = (each for each, _ in tasks_around(namespace))
        await _add_newest(view, saver, thread_id, (namespace, *around))
    return view


async def _add_newest(
    view: ThreadView,
    saver: BaseCheckpointSaver[Any],
    thread_id: str | None,
    namespaces: Iterable[str],
) -> None:
    for namespace in namespaces:
        if namespace not in view.newest:
            saved = await newest_checkpoint(saver, thread_id, namespace)
            if saved is not None:
                view.add(saved)


async def read_whole(source: Any, config: RunnableConfig) -> ThreadView:
    """Read all checkpoints of a thread, or all that a server shows."""
    saver = saver_of(source)
    if saver is None:
        from graph_retry._core.threads.server.server_threads import read_history  # noqa: PLC0415

        return await read_history(source, config) if is_remote(source) else ThreadView()
    view = ThreadView()
    thread: RunnableConfig = {"configurable": {"thread_id": thread_of(config)}}
    for saved in await list_checkpoints(saver, thread):
        view.add(saved)
    return view


def reader_of(source: Any, thread_id: str | None, namespace: str) -> Reader:
    """Return a function that reads a call's checkpoints, from a checkpointer or a server."""
    namespace = "" if namespace.startswith("state:") else namespace
    saver = saver_of(source)
    if saver is not None:
        return saved_at(saver, thread_id, namespace)
    from graph_retry._core.threads.server.server_threads import snapshot_at  # noqa: PLC0415

    async def read(place: KeptIn) -> Mapping[str, Any] | None:
        snapshot = await snapshot_at(source, record_place(thread_id, namespace, place))
        return snapshot.values if snapshot and is_object(snapshot.values) else None

    return read


async def add_others(
    view: ThreadView, graph: Any, config: RunnableConfig, others: Mapping[str, str]
) -> None:
    """Add the questions of other libraries to a view, if the thread still waits for their answers.

    `others` has the namespaces of the questions by interrupt id.

    LangGraph shows an interrupt until its node ends, even if an answer is saved. A second answer
    would have no effect, so a question with a saved answer is left out. Only the first interrupt of
    a task can be checked, because the ids of later interrupts cannot be computed.
    """
    saver, thread_id, state = saver_of(graph), thread_of(config), None
    if others and saver is not None:
        state = await get_state(graph, place_of(thread_id), subgraphs=True)
    for interrupt_id, place in others.items():
        if saver is None or state is None or await _waits(saver, thread_id, state, interrupt_id):
            view.add(unread(place_of(thread_id, place)))


async def _waits(
    saver: BaseCheckpointSaver[Any], thread_id: str, state: StateSnapshot, interrupt_id: str
) -> bool:
    task = None
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
