"""End expired reviews, and remind people of the other open reviews, in one pass over all threads.

One such pass is a sweep. A cron job, for example, calls `expire_reviews` regularly.

A reminder, or an escalation to other people, is a stage of the review and is sent once. The
names of the sent stages are saved in the review's thread, in a namespace of their own, so deleting
the thread deletes them. A sweep locks the thread while it sends messages, so a parallel sweep
cannot send them again. A stage is saved after its message was sent. So the next sweep repeats a
failed message, and a crash repeats at most one message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointMetadata,
    empty_checkpoint,
)

from graph_retry._core.ground.functions.arguments import Seconds, async_twin, in_sync
from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.json import digest, is_number, is_object
from graph_retry._core.ground.wording import counted, passed_as, quoted_with_article
from graph_retry._core.langgraph.storage.checkpoints import (
    newest_checkpoint,
    place_of,
    put_checkpoint,
    read_checkpoint,
    waits_for,
)
from graph_retry._core.langgraph.storage.lock import ThreadLock
from graph_retry._core.review.deadline import EXPIRE, after, is_expired
from graph_retry._core.threads.answers.resuming import resuming
from graph_retry._core.threads.inbox import find_all
from graph_retry._core.threads.reviews import PendingReview
from graph_retry._core.threads.saved.graphs import invoke, saver_of, thread_of
from graph_retry._core.threads.saved.thread_state import open_questions, read_shown
from graph_retry.errors import CallCancelled, StaleDecision
from graph_retry.lossless._ground import as_repr

TOLD = "graph-retry:told"
"""The namespace of the sent stages, and the key in its checkpoints' metadata."""


@dataclass(frozen=True)
class Stage:
    """A message that is due if a review still waits `seconds` after its question was asked.

    option: The option of the sweep that gave the function `tell`.
    """

    option: str
    seconds: float
    tell: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """The saved name of a sent stage, such as `remind 3600`."""
        return f"{'remind' if self.option == 'notify' else 'escalate'} {self.seconds}"


def stages_of(
    notify: Callable[[Any], Any] | None,
    remind_after: float | Collection[float] | None,
    escalate_to: Mapping[float, Callable[[Any], Any]] | None,
) -> list[Stage]:
    """Return the stages that the options of a sweep ask for, the earliest first.

    Raises:
        ValueError: If only one of `remind_after` and `notify` is given.
    """
    if (remind_after is None) != (notify is None):
        raise ValueError("`remind_after` and `notify` work only together: give both, or neither.")
    given: Any = remind_after or ()
    times: list[Any] = [given] if is_number(given) else list(given)
    stages = [Stage("notify", seconds, notify) for seconds in times if notify]
    stages += [Stage("escalate_to", at, tell) for at, tell in (escalate_to or {}).items()]
    return sorted(stages, key=lambda stage: stage.seconds)


async def remind(
    saver: BaseCheckpointSaver[Any], review: PendingReview, stages: Iterable[Stage]
) -> None:
    """Send the due messages about a review that were not sent yet. Skip a locked thread."""
    asked_at, thread_id = review.asked_at, review.thread_id
    if asked_at is None or thread_id is None or not is_expired(review.deferred_until or asked_at):
        return
    due = [stage for stage in stages if is_expired(after(asked_at, stage.seconds))]
    if not due:
        return
    with ThreadLock(saver, thread_id) as lock:
        if not await lock.try_acquire():
            return
        namespace = review.namespace
        saved = await newest_checkpoint(saver, thread_id, namespace)
        if saved is None or not waits_for(saved, review.review_id):
            return
        # The key stays the same after the question is deferred, assigned or asked again.
        key = digest(namespace, asked_at)
        note: Any = await read_checkpoint(saver, place_of(thread_id, TOLD, key))
        told: list[str] = list(note.metadata.get(TOLD, ())) if note else []
        for stage in due:
            if stage.name not in told:
                with passed_as(stage.option):
                    await call(stage.tell, review)
                told.append(stage.name)
                await _write(saver, place_of(thread_id, TOLD), key, told)


async def _write(
    saver: BaseCheckpointSaver[Any], place: RunnableConfig, key: str, told: list[str]
) -> None:
    """Save the sent stages in the metadata of a checkpoint without state. Replace the old one."""
    checkpoint: Checkpoint = {**empty_checkpoint(), "id": key}
    noted = cast("CheckpointMetadata", {TOLD: told})
    await put_checkpoint(saver, place, checkpoint, noted)


@in_sync
async def expire_reviews(
    source: Any,
    *,
    config: RunnableConfig | None = None,
    context: Any = None,
    notify: Callable[[PendingReview], Any] | None = None,
    remind_after: Seconds | Collection[Seconds] | None = None,
    escalate_to: Mapping[Seconds, Callable[[PendingReview], Any]] | None = None,
) -> list[PendingReview]:
    """End each expired review by its `default_decision`, and continue its thread.

    One call of this function is a sweep over all threads. If a process died after it had saved an
    answer, a sweep also applies this answer and continues the thread.

    If several sweeps run at the same time, only one of them ends a review. If a person answers the
    review meanwhile, that answer counts. On a server, a sweep does not wait for runs it started.

    Sweeps can also remind people of reviews that have not expired. Each reminder is sent once. But
    the next sweep repeats a failed message, and a crash may repeat one message. A deferred review
    gets no reminder before the time to which it was deferred.

    Args:
        source: A compiled graph, or a client of `langgraph_sdk`; see `list_reviews`.
        config: Values for the runs, without a `thread_id`; see `list_reviews`.
        context: LangGraph's `context` for the runs; see `resume`.
        notify: A sync or async function that reminds people of a review, such as
            `graph_retry.observers.Slack`.
        remind_after: Seconds after the question until `notify` is called. Give several numbers to
            repeat the reminder.
        escalate_to: A dict `{seconds after the question: function}` of functions like `notify`, for
            other people.

    Returns:
        The reviews that the default decision ended, even if their thread then raised
        `CallCancelled`.

    Raises:
        ExceptionGroup: If some threads could not be continued, or some messages failed. All other
            threads and messages are handled first.
        TypeError: If `source` is a checkpointer. Also if reminders are set and `source` is a
            client: sent reminders are recorded in a checkpointer, which a client lacks.
        ValueError: If only one of `remind_after` and `notify` is given.

    Example:
        >>> from graph_retry import respond
        >>> from graph_retry.testing import waiting_thread
        >>> graph, config = waiting_thread(expires_after=0.001, default_decision=respond(0))
        >>> [review.thread_id for review in expire_reviews(graph)]
        ['1']
        >>> graph.get_state(config).values
        0
    """
    stages = stages_of(notify, remind_after, escalate_to)
    saver = saver_of(source)
    _check_source(source, saver, stages)
    ended: list[PendingReview] = []
    errors: list[Exception] = []
    due: dict[str | None, list[PendingReview]] = {}
    reviews: list[PendingReview] = await find_all(source, config=config, answered=True)
    for review in reviews:
        if review.unapplied or is_expired(review.expires_at):
            due.setdefault(review.thread_id, []).append(review)
        elif stages and saver is not None:
            try:
                await remind(saver, review, stages)
            except Exception as error:  # noqa: BLE001 - the other reviews must not wait for this one
                errors.append(error)
    for reviews in due.values():
        together = [review for review in reviews if not _is_answered(review)]
        try:
            await _end(reviews, context)
        except (StaleDecision, TimeoutError):  # Another process has ended or answered them.
            continue
        except CallCancelled:  # A default decision rejected its call. Other calls may still wait.
            left = await open_questions(reviews[0].graph, reviews[0].config)
            waiting = {asked.review_id for asked in left}
            ended += [review for review in together if review.review_id not in waiting]
        except Exception as error:  # noqa: BLE001 - the other threads must not wait for this one
            errors.append(error)
        else:
            ended += together
    if errors:
        what = "could not be ended, or its people not be told"
        raise ExceptionGroup(f"{counted(len(errors), 'thread')} {what}", errors)
    return ended


aexpire_reviews = async_twin(expire_reviews)


def _check_source(source: Any, saver: object, stages: Collection[Stage]) -> None:
    if saver is source:
        raise TypeError(
            f"`source` is {quoted_with_article(type(source).__name__)}, which cannot continue a "
            "thread: give the graph that asked."
        )
    if stages and saver is None:
        raise TypeError(
            "reminders need a graph with its checkpointer, because each sent reminder is noted in "
            "the checkpointer. A client of a server has no checkpointer."
        )


def _is_answered(review: PendingReview) -> bool:
    """Return whether a review has a saved answer, so that it must not expire."""
    answer = None if review.unapplied is None else review.unapplied["value"]
    return answer is not None and not (is_object(answer) and answer.get("type") == EXPIRE)


async def _end(reviews: list[PendingReview], context: Any) -> Any:
    """Let the expired reviews of one thread end by their default decisions.

    On a server, the run is not awaited, because the sweep itself may occupy the only worker.
    """
    first = reviews[0]
    ids = [review.review_id for review in reviews if review.unapplied is None]
    if not ids:
        return await _run_answered(first.graph, first.config, context)
    answers = {review_id: {"type": EXPIRE, "review_id": review_id} for review_id in ids}
    return await resuming(
        first.graph, first.config, answers=answers, wait=0.0, context=context, background=True
    )


async def _run_answered(graph: Any, config: RunnableConfig, context: Any) -> None:
    """Continue a thread whose saved answers were not applied, because a process died.

    Raises:
        StaleDecision: If another process runs the thread now, or has already applied the answers.
    """
    thread_id = thread_of(config)
    with ThreadLock(saver_of(graph), thread_id) as lock:
        is_held = await lock.try_acquire()
        asked = (await read_shown(graph, config)).asked() if is_held else []
        if not any(each.unapplied is not None for each in asked):
            raise StaleDecision(f"another process has continued thread {as_repr(thread_id)}.")
        await invoke(graph, None, config, durability="sync", context=context)
