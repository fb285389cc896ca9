"""Find reviews that nobody can answer: the thread went on although a call still waits."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from graph_retry.engine.state import ANSWER, LOOP, loop_of
from graph_retry.flow import Ask, Flow
from graph_retry.history import SavedThread, is_local
from graph_retry.ledger import Ledger
from graph_retry.pausing import swallowed_text


class SwallowedReview(NamedTuple):
    """A review whose pause was caught by the code around its call.

    `name` is the node the call was made in, or the call's own name where that is known.
    """

    review_id: str
    name: str
    namespace: str

    @property
    def problem(self) -> str:
        """Say what became of the pause, and what to do."""
        return swallowed_text(self.name)


def swallowed_reviews(graph: Any, config: RunnableConfig) -> Flow[list[SwallowedReview]]:
    """Read from a thread's checkpoints which open reviews it has left behind by itself.

    A review is left behind where the node around its call is done, or its graph is past it,
    though the call still waits. What a new input, a fork or an edited state abandoned does not
    count. All checkpoints of the thread are read, so ask where something seems to be missing.
    Of a `RemoteGraph` nothing is known.
    """
    saver: Any = cast("Any", graph).checkpointer if is_local(graph) else None
    if not isinstance(saver, BaseCheckpointSaver):
        return []
    thread_id = config.get("configurable", {}).get("thread_id")
    place = {"configurable": {"thread_id": thread_id}}
    thread: SavedThread = yield Ask(SavedThread(cast("Any", saver)), "read", (place,))
    line = thread.line()
    found: list[SwallowedReview] = []
    for namespace, saved in thread.newest.items():
        values = saved.checkpoint["channel_values"]
        review = loop_of(values)["review"] if LOOP in values else None
        if review is None or values.get(ANSWER) is not None:
            continue
        parents: dict[str, str] = saved.metadata.get("parents", {})
        if parents.get("") not in line:
            continue
        if any(_is_past(thread.newest.get(at), id_, at, namespace) for at, id_ in parents.items()):
            name = Ledger([], namespace).name
            found.append(SwallowedReview(review["review_id"], name, namespace))
    return found


def _is_past(now: CheckpointTuple | None, checkpoint_id: str, place: str, namespace: str) -> bool:
    """Tell whether the graph in `place` went past the step in which the call was made."""
    if now is None:  # a task in a node keeps no checkpoints of its own
        return False
    if now.checkpoint["id"] != checkpoint_id:
        return now.metadata.get("source") == "loop"
    inside = namespace.removeprefix(place).removeprefix("|")
    task = inside.partition("|")[0].rpartition(":")[2]
    return any(
        write[0] == task and write[1] not in (ERROR, INTERRUPT, RESUME)
        for write in now.pending_writes or ()
    )
