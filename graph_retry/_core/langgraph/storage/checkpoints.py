"""Read and write the checkpoints of a saver, sync or async.

Beside a checkpoint, LangGraph saves the writes of the tasks that start from it (`pending_writes`),
each with the task's id and a channel. If the process crashes before the next checkpoint exists,
only these writes show that a task finished. Writes under the id `NO_TASK` belong to no task. The
next run adds them to the state at its start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from inspect import Parameter, signature
from typing import Any, NamedTuple, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.types import StateSnapshot

from graph_retry._core.ground.functions.awaiting import (
    each_of,
    is_async_only,
    is_sync,
    sleep,
    sync_or_async,
    to_its_end,
)
from graph_retry._core.ground.json import address_key, digest, is_object
from graph_retry._core.state.namespaces import CONFIG_NAMESPACE, namespace_named
from graph_retry._core.state.position import ANSWER, LOOP, is_open
from graph_retry.errors import ReplayMismatch
from graph_retry.lossless._ground import as_repr, error_text, text_of
from graph_retry.records import SAVED_NAMESPACE, KeptIn

_WAITED = 1.0
"""The most seconds that `check_clock` waits if this machine's clock is behind."""

_MOST = 1_000_000
"""The limit for listing checkpoints. Without a limit, some savers list only 100."""

NO_TASK = str(UUID(int=0))
"""The task id under which LangGraph saves writes that belong to no task."""

PLACE = frozenset({"thread_id", "checkpoint_id", CONFIG_NAMESPACE, "checkpoint_map"})
"""The keys of `configurable` that name a place in a thread."""


def place_of(
    thread_id: str | None, namespace: str = "", checkpoint_id: str | None = None
) -> RunnableConfig:
    """Return the config of a namespace of a thread, or of one checkpoint in it."""
    place: dict[str, Any] = {"thread_id": thread_id, CONFIG_NAMESPACE: namespace}
    at = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": place | at}


def namespace_of(saved: CheckpointTuple | StateSnapshot) -> str:
    """Return the namespace of a checkpoint or of a state snapshot."""
    return namespace_named(saved.config.get("configurable", {}))


def thread_id_of(saved: CheckpointTuple) -> str:
    return str(saved.config.get("configurable", {}).get("thread_id", ""))


def parent_of(saved: CheckpointTuple) -> str:
    """Return the id of the checkpoint before `saved`; empty if `saved` is the first."""
    before = saved.parent_config or {}
    return str(before.get("configurable", {}).get("checkpoint_id", ""))


def root_of(saved: CheckpointTuple) -> str:
    """Return the id of the outermost graph's checkpoint whose step saved this checkpoint."""
    return saved.metadata.get("parents", {}).get("", "")


def line_of(roots: Mapping[str, CheckpointTuple]) -> dict[str, bool]:
    """Return, by id, whether each root of a thread led to the newest root.

    A root is a checkpoint of the outermost graph. `roots` has these checkpoints by id, newest
    first. The value is False for a root that a fork left behind. If roots were deleted, the result
    also has the parent of the oldest root that led to the newest root.
    """
    line = dict.fromkeys(roots, False)
    here, after, is_step = next(iter(roots), ""), "", True
    while here in roots:
        line[here] = is_step or is_copy(roots[after].metadata, roots[here])
        is_step = source_of(roots[here]) == "loop"
        here, after = parent_of(roots[here]), here
    if here and source_of(roots[after]) != "fork":
        line[here] = is_step
    return line


def is_copy(metadata: Mapping[str, Any], parent: CheckpointTuple) -> bool:
    """Return whether the checkpoint with this metadata and parent copies another checkpoint.

    LangGraph's copy of a checkpoint has the parent of the original, and a later step number.
    """
    step: int = metadata.get("step", -1)
    return step > parent.metadata.get("step", -1) + 1


def values_of(saved: CheckpointTuple) -> dict[str, Any]:
    """Return the state that the next run starts from, including an answer in `pending_writes`."""
    values = saved.checkpoint["channel_values"]
    for task, channel, value in saved.pending_writes or ():
        if task == NO_TASK and channel == ANSWER:
            return {**values, ANSWER: value}
    return values


def source_of(saved: CheckpointTuple) -> str:
    """Return what made a checkpoint: `input`, `loop` (a step), `update` or `fork`."""
    return str(saved.metadata.get("source"))


def writers_of(saved: CheckpointTuple) -> set[str]:
    """Return the ids of the tasks in a checkpoint's pending writes."""
    return {str(write[0]) for write in saved.pending_writes or ()}


def as_saved(snapshot: StateSnapshot) -> CheckpointTuple:
    """Convert a server's state snapshot to a checkpoint.

    A server's snapshot has no pending writes. A task that is not in `next` counts as a task that
    has written its result.
    """
    config, metadata = cast("Any", snapshot.config), cast("Any", snapshot.metadata or {})
    values = snapshot.values if is_object(snapshot.values) else {}
    writes: list[Any] = []
    for task in snapshot.tasks:
        asked = [(task.id, INTERRUPT, task.interrupts)] if task.interrupts else []
        ended = [] if task.name in snapshot.next else [(task.id, LOOP, None)]
        writes += [(task.id, "", None), *asked, *ended]
    checkpoint: Any = {
        "id": config["configurable"].get("checkpoint_id", ""),
        "ts": snapshot.created_at,
        "channel_values": values,
    }
    return CheckpointTuple(config, checkpoint, metadata, snapshot.parent_config, writes)


def unread(place: RunnableConfig) -> CheckpointTuple:
    """Return an empty checkpoint, for a place whose checkpoint is deleted or not shown."""
    checkpoint: Any = {"id": "", "channel_values": {}}
    return CheckpointTuple(place, checkpoint, {})


def without_state(saved: CheckpointTuple) -> CheckpointTuple:
    """Return a copy of a checkpoint without its state, to save memory."""
    return saved._replace(checkpoint={**saved.checkpoint, "channel_values": {}})


async def list_checkpoints(
    saver: BaseCheckpointSaver[Any], thread: RunnableConfig | None, **options: Any
) -> list[CheckpointTuple]:
    """List the checkpoints of a thread or of all threads, newest first.

    The options are `filter`, `before` and `limit`. Some savers ignore these options. Therefore this
    function drops each listed checkpoint that the options exclude.
    """
    listed = await _listed(saver, thread, options)
    found = [saved for saved in listed if _is_wanted(saved, thread, options)]
    if len(found) < len(listed) and "limit" in options:
        listed = await _listed(saver, thread, {**options, "limit": None})
        found = [saved for saved in listed if _is_wanted(saved, thread, options)]
    found.sort(key=lambda saved: saved.checkpoint["id"], reverse=True)
    return found[: options.get("limit")]


def _is_wanted(
    saved: CheckpointTuple, thread: RunnableConfig | None, options: Mapping[str, Any]
) -> bool:
    place: Mapping[str, Any] = (thread or {}).get("configurable", {})
    newer: Mapping[str, Any] = options.get("before", {})
    before: str | None = newer.get("configurable", {}).get("checkpoint_id")
    metadata: Mapping[str, Any] = saved.metadata
    wanted: Mapping[str, Any] = options.get("filter", {})
    return (
        str(place.get("thread_id", thread_id_of(saved))) == thread_id_of(saved)
        and place.get(CONFIG_NAMESPACE, namespace_of(saved)) == namespace_of(saved)
        and (before is None or saved.checkpoint["id"] < before)
        and all(metadata.get(key) == value for key, value in wanted.items())
    )


async def _listed(
    saver: BaseCheckpointSaver[Any], thread: RunnableConfig | None, options: Mapping[str, Any]
) -> list[CheckpointTuple]:
    known = signature(saver.list if is_sync() else saver.alist).parameters
    has_all = any(one.kind is Parameter.VAR_KEYWORD for one in known.values())
    given: dict[str, Any] = {
        name: value
        for name, value in {"limit": _MOST, **options}.items()
        if value is not None and (has_all or name in known)
    }
    while True:
        try:
            return [one async for one in each_of(saver.list, saver.alist, thread, **given)]
        except NotImplementedError as error:
            raise NotImplementedError(
                f"`{type(saver).__name__}` does not list checkpoints (it has no `list`)"
            ) from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            if thread is not None or is_async_only(error):
                raise
            raise NotImplementedError(
                f"`{type(saver).__name__}` does not list the checkpoints of all threads "
                f"({error_text(error)})"
            ) from error
        except RuntimeError as error:
            # LangGraph's in-memory saver raises this while another thread saves.
            if "changed size during iteration" not in text_of(error):
                raise


async def newest_checkpoint(
    saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str
) -> CheckpointTuple | None:
    place = place_of(thread_id, namespace)
    return await sync_or_async(saver.get_tuple, saver.aget_tuple, place)


async def read_checkpoint(
    saver: BaseCheckpointSaver[Any], config: RunnableConfig
) -> CheckpointTuple | None:
    """Read one checkpoint; None if it is deleted, even if the saver returns another one."""
    wanted = config.get("configurable", {})["checkpoint_id"]
    saved = await sync_or_async(saver.get_tuple, saver.aget_tuple, config)
    return saved if saved is not None and saved.checkpoint["id"] == wanted else None


async def check_clock(saved: CheckpointTuple | None) -> None:
    """Wait if this clock is up to a second behind the newest checkpoint; refuse to run beyond that.

    LangGraph orders the checkpoints of a thread by the time in their ids. If a machine's clock is
    behind, its checkpoints do not become the newest, and a resumed run would repeat calls.

    Raises:
        ReplayMismatch: If this clock is more than a second behind that of the checkpoint's machine.
    """
    if saved is None:
        return
    saved_at = datetime.fromisoformat(saved.checkpoint["ts"])
    behind = (saved_at - datetime.now(UTC)).total_seconds()
    if behind > _WAITED:
        raise ReplayMismatch(
            f"the clock of this machine is {behind:.0f} seconds behind the one that saved this "
            f"thread last, at {saved_at.isoformat(timespec='seconds')}: LangGraph would take what "
            "is saved now for older and not find it again. Set the clock, or continue the "
            "thread later. Nothing was called."
        )
    if behind > 0:
        await sleep(behind)


def waits_for(saved: CheckpointTuple, review_id: str | None) -> bool:
    """Return whether a call's newest checkpoint still waits for this review's answer."""
    return not is_answered(saved) and is_open(saved.checkpoint["channel_values"], review_id)


def has_answer(saved: CheckpointTuple, task_id: str) -> bool:
    """Return whether a checkpoint's pending writes have an answer to an interrupt of a task."""
    writes = saved.pending_writes or ()
    return any(task == task_id and channel == RESUME for task, channel, _ in writes)


def is_answered(saved: CheckpointTuple) -> bool:
    """Return whether the newest checkpoint of a call has an answer that the next run applies.

    Raises:
        ReplayMismatch: If the saver mixes the writes of several checkpoints.
    """
    writes = saved.pending_writes or ()
    asking = {task for task, channel, _ in writes if channel == INTERRUPT}
    others = {task for task, channel, _ in writes if channel == LOOP} - asking
    # An update of the state may have been cut off (1 task), and so may a step that did not ask (2).
    if len(others) > (1 if asking else 2):
        raise ReplayMismatch(
            "the checkpointer returns the writes of earlier checkpoints beside the newest one of "
            f"{as_repr(namespace_of(saved))}, so that nobody can tell whether its review is "
            "answered, and LangGraph itself would resume with old answers. Nothing was called. Use "
            "a saver that keeps the writes of each checkpoint apart, such as a saver of the same "
            "package that is not shallow; `graph_retry.testing.check_store` checks a saver."
        )
    return any(channel in (LOOP, ANSWER) for _, channel, _ in writes)


def unapplied_answer(saved: CheckpointTuple, review_id: str) -> dict[str, Any] | None:
    """Return the answer to this review that `resume` has saved and no run has applied yet."""
    if not is_open(saved.checkpoint["channel_values"], review_id):
        return None
    answers = (note for _, channel, note in saved.pending_writes or () if channel == ANSWER)
    return next((note for note in answers if is_object(note)), None)


async def write_answer(
    saver: BaseCheckpointSaver[Any], asked: CheckpointTuple, note: Mapping[str, Any]
) -> None:
    """Write an answer into the state of the call that asked, beside its newest checkpoint.

    The next run of the thread continues the call with this answer. The answer is a single write, so
    it is saved completely or not at all.

    A saver numbers a task's writes by their places in the given list, and drops a write whose
    number is taken. Under `NO_TASK`, LangGraph may have saved writes. Therefore the list begins
    with one empty write for each of these, and the answer gets the first free number.

    Raises:
        ReplayMismatch: If the clock of this machine is behind.
    """
    await check_clock(asked)
    taken = sum(write[0] == NO_TASK for write in asked.pending_writes or ())
    await put_writes(saver, asked.config, [*[(RESUME, None)] * taken, (ANSWER, note)], NO_TASK)


async def put_writes(
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
) -> None:
    put = sync_or_async(saver.put_writes, saver.aput_writes, config, writes, task_id)
    await to_its_end(put)


async def put_checkpoint(
    saver: BaseCheckpointSaver[Any],
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
) -> None:
    """Save a checkpoint that has no new versions of channels."""
    await to_its_end(sync_or_async(saver.put, saver.aput, config, checkpoint, metadata, {}))


def saved_at(
    saver: BaseCheckpointSaver[Any], thread_id: str | None, namespace: str
) -> Callable[[KeptIn], Awaitable[Mapping[str, Any] | None]]:
    """Return a function that reads the checkpoints of one call from a saver."""

    async def read(place: KeptIn) -> Mapping[str, Any] | None:
        saved = await read_checkpoint(saver, record_place(thread_id, namespace, place))
        return saved and saved.checkpoint["channel_values"]

    return read


def record_place(thread_id: str | None, namespace: str, place: KeptIn) -> RunnableConfig:
    """Return a checkpoint's config; `place` may name a namespace other than the call's."""
    return place_of(thread_id, place.get(SAVED_NAMESPACE, namespace), place["checkpoint_id"])


class OpenReview(NamedTuple):
    """An open review in the table: a call that waits for a person. `place` begins with its time."""

    thread_id: str
    namespace: str
    review_id: str
    place: str

    @property
    def key(self) -> str:
        """The `key` of the review."""
        return address_key(self.thread_id, self.review_id)


def open_review(
    thread_id: str | None, namespace: str, review_id: str, asked_at: str | None
) -> OpenReview:
    # The digest keeps places unique, because a copied thread has the same review id and time.
    place = f"{asked_at or ''}/{review_id}/{digest(str(thread_id), namespace)}"
    return OpenReview(thread_id or "", namespace, review_id, place)


def is_over(entry: OpenReview, root: CheckpointTuple | None, call: CheckpointTuple | None) -> bool:
    """Return whether a review is closed for good, although its thread does not show the review.

    A review is closed if its call has continued, or if the thread has left the step that made the
    call. A call that is about to ask has an open review.
    """
    if call is None or not waits_for(call, entry.review_id):
        return True
    begun_from = root_of(call)
    return bool(begun_from) and root is not None and root.checkpoint["id"] > begun_from
