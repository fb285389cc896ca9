"""Fork a thread so that each call in the fork continues from its earlier state.

A fork continues a thread from an earlier checkpoint. The tasks of a fork get new ids, so their
calls do not find their saved state by namespace. Each call of the fork therefore searches the calls
that were made from the forked checkpoint, whose metadata has the id of this checkpoint under
`parents`. A run from an earlier checkpoint is a fork. LangGraph then adds a checkpoint whose parent
is the forked checkpoint. `rewind` copies the forked checkpoint instead, with a note that names the
forked checkpoint.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import lru_cache, partial
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointTuple,
    empty_checkpoint,
)

from graph_retry._core.ground.functions.awaiting import SharedReads
from graph_retry._core.langgraph.open_questions import namespace_in, questions_of, shown_at
from graph_retry._core.langgraph.run_config import brings_answer_to, outermost_loop
from graph_retry._core.langgraph.storage.checkpoints import (
    is_copy,
    list_checkpoints,
    namespace_of,
    newest_checkpoint,
    parent_of,
    place_of,
    put_checkpoint,
    read_checkpoint,
    root_of,
    source_of,
    thread_id_of,
    values_of,
    waits_for,
)
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry._core.state.position import LOOP, loop_of
from graph_retry._core.state.rewinding import ForkNote, PastCalls, RewindRefused

T = TypeVar("T")

COPY = "__copy__"
"""The node name with which LangGraph's `update_state` copies a checkpoint to its thread's end."""

FORK = "graph_retry_fork"
"""The key of the fork note (JSON) in the metadata of the copied checkpoint.

A server accepts no metadata. On a server, the key is therefore in the run's `configurable`. Its
value is a list with the JSON, because LangGraph would copy a plain string into each checkpoint.
"""

_WHY_ENDED = {
    "input": "the thread got a new input. Answer with `resume` before you invoke it again",
    "fork": "the thread was run from an earlier checkpoint",
}
"""The reason why an open review ended, by the source of the checkpoint that ended it."""

_LOG = logging.getLogger("graph_retry")

_reads: WeakKeyDictionary[Any, SharedReads] = WeakKeyDictionary()
"""Values that all calls in one step of the outermost graph share."""


def fork_note(root: str, call: str = "", answer: dict[str, Any] | None = None) -> str:
    """Return the fork note as JSON; `ForkNote` explains the fields."""
    fork: ForkNote = {"root": root, "call": call, "answer": answer}
    return json.dumps(fork)


async def put_fork(saver: BaseCheckpointSaver[Any], old: RunnableConfig, note: str) -> str:
    """Copy a checkpoint to the end of its thread, with the fork note; return the copy's id.

    The copy and the note are a single write, so a crash cannot separate them.
    """
    saved = await read_checkpoint(saver, old)
    if saved is None:
        raise RewindRefused("the checkpoint to rewind to is gone.")
    empty = empty_checkpoint()
    copy: Checkpoint = {**saved.checkpoint, "id": empty["id"], "ts": empty["ts"]}
    step = saved.metadata.get("step", -1) + 1
    told: Any = {**saved.metadata, "source": "fork", "step": step, FORK: note}
    parent = saved.parent_config or place_of(thread_id_of(saved), namespace_of(saved))
    await put_checkpoint(saver, parent, copy, told)
    return str(copy["id"])


async def past_calls(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any]
) -> PastCalls | None:
    """Return the calls that were made before a fork; None if the run is not in a fork.

    All calls of the run share the result. If a thread is run twice from the start of a fork,
    LangGraph makes no second fork, but runs the subgraphs in new tasks.
    """
    loop = outermost_loop(configurable)
    if loop is None or not (loop.is_replaying or loop.checkpoint_metadata.get("source") == "fork"):
        return None
    here = str(configurable.get("checkpoint_map", {}).get("", ""))
    read = partial(_read_past_calls, configurable, saver, loop, here)
    return await read_once_a_step(configurable, "past", read)


async def read_once_a_step(
    configurable: Mapping[str, Any], name: str, read: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """Read a value once for all tasks of a step, such as the branches of a `Send`."""
    loop = outermost_loop(configurable)
    if loop is None:
        return await read()
    here = str(configurable.get("checkpoint_map", {}).get("", ""))
    return await _reads.setdefault(loop, SharedReads()).get(f"{name} {here}", read)


async def _read_past_calls(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any], loop: Any, here: str
) -> PastCalls:
    thread: RunnableConfig = {"configurable": {"thread_id": str(configurable["thread_id"])}}
    saved = await list_checkpoints(saver, thread)
    roots = {each.checkpoint["id"]: each for each in saved if not namespace_of(each)}
    before: Any = loop.prev_checkpoint_config or {}
    before = before.get("configurable", {}).get("checkpoint_id", "")
    told: Any = configurable.get(FORK)
    fork = _fork({FORK: told[0]} if told else loop.checkpoint_metadata, before, roots)
    origins, origin = [here], fork["root"]
    # A fork of a fork also continues the calls that the first fork did not reach.
    while origin:
        origins.append(origin)
        root = roots.get(origin)
        origin = _fork(root.metadata, parent_of(root), roots)["root"] if root else ""
    return PastCalls(fork, _made_from(origins, saved), continued_in(saved, origins))


def _fork(
    metadata: Mapping[str, Any], before: str, roots: Mapping[str, CheckpointTuple]
) -> ForkNote:
    """Return the fork that a checkpoint begins; its `root` is "" if there is no fork.

    `before` is the id of the checkpoint's parent. LangGraph's own forks continue their parent.
    """
    if FORK in metadata:
        return cast("ForkNote", json.loads(metadata[FORK]))
    parent = roots.get(before) if metadata.get("source") == "fork" else None
    is_fork = parent is not None and not is_copy(metadata, parent)
    return {"root": before if is_fork else "", "call": "", "answer": None}


def continued_in(saved: list[CheckpointTuple], roots: Collection[str]) -> dict[str | None, str]:
    """Return the calls that continue earlier calls, as `{earlier namespace: namespace}`.

    Only calls that were made from the checkpoints `roots` are returned.
    """
    made = _made_from(roots, saved)
    return {loop_of(values)["continues"]: namespace for namespace, values in made.items()}


def _made_from(roots: Collection[str], saved: list[CheckpointTuple]) -> dict[str, dict[str, Any]]:
    """Return the newest state of each call made from these checkpoints, oldest call first."""
    newest: dict[str, CheckpointTuple] = {}
    for checkpoint in saved:
        newest.setdefault(namespace_of(checkpoint), checkpoint)
    by_age = sorted(newest.items(), key=lambda item: str(item[1].checkpoint["id"]))
    return {
        namespace: values
        for namespace, checkpoint in by_age
        if LOOP in (values := values_of(checkpoint)) and root_of(checkpoint) in roots
    }


async def tell_ended_reviews(saver: BaseCheckpointSaver[Any], thread_id: str | None) -> str:
    """Warn if the thread's newest input or fork has ended open reviews; return the warning.

    A fork from the checkpoint that shows a review asks the review again, and does not end it.
    """
    store = store_of(saver)
    if store.keeps_reviews and not await store.open_in(thread_id or ""):
        return ""
    place, found = place_of(thread_id), list[CheckpointTuple]()
    for source in _WHY_ENDED:
        found += await list_checkpoints(saver, place, filter={"source": source}, limit=1)
    newest = max(found, key=lambda each: str(each.checkpoint["id"]), default=None)
    if newest is None:
        return ""
    ended = list[str]()
    origin: CheckpointTuple | None = None
    if source_of(newest) == "fork":
        before = await read_checkpoint(saver, place_of(thread_id, "", parent_of(newest)))
        known = {} if before is None else {parent_of(newest): before}
        root = _fork(newest.metadata, parent_of(newest), known)["root"]
        origin = await read_checkpoint(saver, place_of(thread_id, checkpoint_id=root))
    asked_again = {question.get("review_id") for question in questions_of(origin)}
    for head in await list_checkpoints(saver, place, before=newest.config, limit=1):
        for question in questions_of(head):
            call = await newest_checkpoint(saver, thread_id, namespace_in(question))
            review_id = question.get("review_id")
            if call and review_id not in asked_again and waits_for(call, review_id):
                source = newest.metadata.get("source", "")
                names = question["review_id"], question["function_name"]
                ended.append(tell_ended(*names, thread_id, source))
    return "; ".join(ended)


async def tell_unused(
    saver: BaseCheckpointSaver[Any],
    configurable: Mapping[str, Any],
    place: str,
    values: Mapping[str, Any],
    name: str,
) -> None:
    """Warn if an answer was sent to an earlier checkpoint of a call that has ended."""
    loop = outermost_loop(configurable)
    if loop is None or not loop.is_replaying or loop_of(values)["next"] != "end":
        return
    thread_id: str = str(configurable["thread_id"])
    before: Any = loop.prev_checkpoint_config or {}
    here: Any = configurable.get("checkpoint_map", {}).get("")
    roots: list[str | None] = [here, before.get("configurable", {}).get("checkpoint_id")]
    for root in roots:
        asked = await read_checkpoint(saver, place_of(thread_id, "", root)) if root else None
        for question, value, _ in shown_at(asked):
            if namespace_in(value) == place and brings_answer_to(question.id, configurable):
                told = (
                    "an answer to review %s of `%s` (thread %r) was not used: it came to an "
                    "earlier checkpoint, and the call is over; to decide it anew, use `rewind`"
                )
                _LOG.warning(told, value["review_id"], name, thread_id)


@lru_cache(maxsize=1_000)
def tell_ended(review_id: str, name: str, thread_id: str | None, source: str = "input") -> str:
    """Warn once that an input or a fork has ended an open review; return the warning."""
    told = "review %s of `%s` (thread %r) was ended unanswered: %s"
    _LOG.warning(told, review_id, name, thread_id, _WHY_ENDED[source])
    return f"review {review_id} of `{name}` was ended unanswered: {_WHY_ENDED[source]}"
