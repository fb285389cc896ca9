"""The steps of `resume`: lock a thread, match answers with reviews, save them, run the graph."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.pregel.remote import RemoteException
from langgraph.types import Command, Durability

from graph_retry._core.ground.functions.awaiting import AsyncUnderSyncError, is_async_only, sleep
from graph_retry._core.ground.json import is_object
from graph_retry._core.langgraph.open_questions import (
    answer_to_other,
    asked_in,
    drop_plain_answer,
    intervention,
    namespace_in,
    questions_of,
)
from graph_retry._core.langgraph.storage.checkpoints import (
    newest_checkpoint,
    values_of,
    waits_for,
    write_answer,
)
from graph_retry._core.langgraph.storage.lock import ThreadLock, pauses
from graph_retry._core.review.deadline import EXPIRE
from graph_retry._core.state.namespaces import is_of_other
from graph_retry._core.state.position import ANSWER
from graph_retry._core.threads.answers.sent import noted, told_kept
from graph_retry._core.threads.saved.begun import Begun, begun
from graph_retry._core.threads.saved.graphs import (
    at_newest,
    check_compiled,
    get_state,
    invoke,
    is_local,
    saver_of,
    thread_of,
)
from graph_retry._core.threads.saved.thread_state import open_named
from graph_retry._core.threads.saved.view import Asked, ThreadView
from graph_retry.errors import AnswerRefused, CallCancelled, StaleDecision
from graph_retry.lossless._ground import as_repr

if TYPE_CHECKING:
    from graph_retry._core.threads.server.runs import RemoteRuns

_ANSWER_IS_SAVED = (
    "`resume` is sync, but this graph or its checkpointer is async only. Your answer is saved: "
    "continue with `await aresume(graph, config)`, without a decision."
)

_ANSWER_KEPT: dict[str, Any] = {}
"""A marker in place of a question. The call was not made, so its answer is still saved.

Code compares the marker by `is`. It is empty, so that it counts as no question.
"""


@dataclass(frozen=True)
class HeldThread:
    """A locked thread whose answers are saved, so that it is ready to run.

    chosen: The answered questions, each with its answer.
    shown_before: The ids of all reviews that the thread showed before the run.
    by_id: The answers that could not be saved beside a checkpoint, by interrupt id.
    begun: How to run the thread, if `start` was given.
    """

    graph: Any
    config: RunnableConfig
    lock: ThreadLock
    chosen: list[tuple[Asked, Any]]
    shown_before: frozenset[str]
    by_id: dict[str, Any]
    remote: RemoteRuns | None
    begun: Begun

    @property
    def given(self) -> Any:
        """The input of the run: the answers `by_id`, the input of a new thread, or None."""
        return Command(resume=self.by_id) if self.by_id else self.begun.given

    def __enter__(self) -> None: ...

    def __exit__(self, *raised: object) -> None:
        """Release the lock."""
        self.lock.release()

    async def run(self, durability: Durability | None, context: Any) -> Any:
        """Run the graph until it ends or pauses again, and return its state."""
        # With `sync`, each checkpoint is saved before the next step begins. Therefore a run after a
        # crash does not repeat a finished call.
        options: Any = {"durability": durability or "sync", "context": context}
        if self.begun.waits:
            return self.begun.state
        try:
            if self.remote is not None:
                given = {} if durability is None else {"durability": durability}
                return await self.remote.answer(self.by_id, given)
            return await invoke(self.graph, self.given, self.config, **options)
        except (TypeError, asyncio.InvalidStateError) as error:
            if self.chosen and is_async_only(error):
                raise AsyncUnderSyncError(_ANSWER_IS_SAVED) from error
            raise
        except (CallCancelled, RemoteException) as error:
            await self.check_in_time(error)
            raise

    async def check(self, shown: Sequence[Any] | None = None) -> None:
        """Check after the run that all answers were applied.

        `shown` has the values of the interrupts after the run. If `shown` is None, the thread is
        read.

        Raises:
            AnswerRefused: If an answer was not applied. Its question is then asked again.
            StaleDecision: If an answer came too late.
        """
        if shown is None:
            shown = [each.value for each in (await get_state(self.graph, self.config)).interrupts]
        await self._check_applied(shown)
        await self.check_in_time()

    async def _check_applied(self, shown: Sequence[Any]) -> None:
        open_now = [value for value in map(intervention, shown) if value is not None]
        asked_now = [each for each in open_now if each["review_id"] not in self.shown_before]
        new = {namespace_in(each): each for each in asked_now}
        problems, told = list[str](), {"review_ids": list[Any](), "issues": list[Any]()}
        reasons, applied = dict[str, str](), list[str]()
        for asked, _ in self.chosen:
            # A server lists only the shown questions. The checkpoints of local calls have all.
            again = new.get(asked.namespace) or await self._question_now(asked.namespace)
            problem = None
            if again is _ANSWER_KEPT:
                problem = told_kept(asked, open_now, is_over=not shown)
            if open_now and again and again["problem"]:
                problem = again["problem"]
                told["review_ids"].append(again["review_id"])
                told["issues"] += again.get("answer_issues", [])  # An older server omits them.
            whose = f"{as_repr(asked.review_id)} (`{asked.name}`)"
            if problem:
                told_whose = f"The answer to {whose}: " if len(self.chosen) > 1 else ""
                problems.append(f"{told_whose}{problem}")
                reasons[asked.review_id] = problem
            elif again is not _ANSWER_KEPT:
                applied.append(whose)
        if problems:
            problems += [f"Applied: the answer to {', '.join(applied)}."] if applied else []
            raise AnswerRefused("\n".join(dict.fromkeys(problems)), **told, reasons=reasons)

    async def _question_now(self, namespace: str) -> dict[str, Any] | None:
        """Return the question that a call asks now, from its checkpoint; None on a server."""
        saver = saver_of(self.graph)
        call = saver and await newest_checkpoint(saver, thread_of(self.config), namespace)
        if not call:
            return None
        if values_of(call).get(ANSWER) is not None:
            return _ANSWER_KEPT
        questions = questions_of(call)
        return next((each for each in questions if waits_for(call, each.get("review_id"))), None)

    async def check_in_time(self, failed: CallCancelled | RemoteException | None = None) -> None:
        """Raise `StaleDecision` if a default decision was applied instead of an answer."""
        for asked, given in self.chosen:
            expires_at = asked.value["expires_at"]
            lets_expire = is_object(given) and given.get("type") == EXPIRE
            if expires_at is None or lets_expire:
                continue
            # Imported here, because most answers come in time and never need it.
            from graph_retry._core.threads.saved.why_closed import answers_to  # noqa: PLC0415

            answers = await answers_to(self.graph, self.config, asked.review_id)
            if "system" in [author for _, author in answers]:
                why = failed.message if isinstance(failed, CallCancelled) else ""
                end = f" The run ended: {why}." if why else ""
                raise StaleDecision(
                    f"review {as_repr(asked.review_id)} expired at {expires_at}, and its "
                    f"default decision was applied instead of your answer.{end}"
                ) from failed


async def resuming(
    graph: Any,
    config: RunnableConfig,
    decision: Any = None,
    answers: Mapping[str, Any] | None = None,
    *,
    durability: Durability | None = None,
    wait: float = 600.0,
    context: Any = None,
    background: bool = False,
    start: Any = None,
) -> Any:
    """Do what `resume` does. With `background`, start the run on the server without waiting."""
    how: Any = {"wait": wait, "context": context, "background": background, "start": start}
    thread = await take_thread(graph, config, decision, answers, **how)
    with thread:
        state = await thread.run(durability, context)
    if not background:
        await thread.check(asked_in(state))
    return state


async def take_thread(
    graph: Any,
    config: RunnableConfig,
    decision: Any = None,
    answers: Mapping[str, Any] | None = None,
    *,
    wait: float = 600.0,
    context: Any = None,
    background: bool = False,
    start: Any = None,
) -> HeldThread:
    """Lock a thread, and save the answers to its reviews. Raise if an answer has no open review."""
    thread_id, config = _checked(graph, config, decision, answers, start), at_newest(config)
    lock = ThreadLock(getattr(graph, "checkpointer", None), thread_id)
    remote: RemoteRuns | None = None
    if not is_local(graph):
        from graph_retry._core.threads.server.runs import RemoteRuns  # noqa: PLC0415 - for a server

        remote = RemoteRuns(graph, config, context=context, wait=not background)
    with ExitStack() as on_failure:
        on_failure.callback(lock.release)
        lengths, waited, is_held = pauses(), 0.0, False
        while True:
            is_held = is_held or await lock.try_acquire()
            if is_held and remote is not None:
                await remote.look()
            # The questions are read even while another process holds the lock, so that an answer to
            # a closed review fails at once and does not wait.
            view, questions = ThreadView(), list[Asked]()
            if decision is not None or answers is not None:
                view, questions = await open_named(graph, config, _named_in(decision, answers))
            closed = partial(_why_closed, graph, config, None if is_held else lock)
            # The decision is for the review that is open now. Another review may open later.
            if decision is not None:
                name = await _meant_by(decision, thread_id, questions, closed)
                answers, decision = {name: decision}, None
            # `_match` raises if the review is no longer open.
            chosen = await _match(thread_id, questions, answers or {}, closed)
            if is_held and not (chosen and remote is not None and remote.is_asking):
                break
            if waited >= wait:
                raise TimeoutError(
                    f"another process still runs thread {as_repr(thread_id)} after `wait` = "
                    f"{wait} s. Nothing was saved: try again later."
                )
            pause = next(lengths)
            await sleep(pause)
            waited += pause
        stands = Begun() if start is None else await begun(graph, config, start)
        by_id = await _write_down(saver_of(graph), view.root, chosen)
        on_failure.pop_all()  # The caller holds the lock from now on.
    shown_before = frozenset(question.value["review_id"] for question in view.questions)
    return HeldThread(graph, config, lock, chosen, shown_before, by_id, remote, stands)


async def _why_closed(*which: Any) -> str:
    # Imported here, because most answers are to open reviews and never need it.
    from graph_retry._core.threads.saved.why_closed import why_closed  # noqa: PLC0415

    return await why_closed(*which)


def _checked(
    graph: Any, config: RunnableConfig, decision: Any, answers: Mapping[str, Any] | None, start: Any
) -> str:
    thread_id = thread_of(config)
    if decision is not None and answers is not None:
        raise TypeError("give either `decision` for one review, or `answers` for several.")
    if start is not None and (decision is not None or answers is not None):
        raise TypeError("`start` cannot be combined with an answer: leave one of them out.")
    if graph is None:
        raise ValueError(
            "`graph` is None, as for a review from a checkpointer without a graph: give the "
            "graph that asked."
        )
    check_compiled(graph)
    if start is not None and not is_local(graph):
        raise TypeError(
            "`start` needs a graph in this process: on a server, start the thread with the "
            'client\'s `runs`, and with `multitask_strategy="reject"`.'
        )
    if answers is not None and not answers:
        raise TypeError(
            "`answers` is empty: give {review_id: decision}, with ids from `pending_reviews`. "
            "To continue without an answer, leave `answers` out."
        )
    return thread_id


def _named_in(decision: Any, answers: Mapping[str, Any] | None) -> Collection[str] | None:
    if isinstance(decision, Mapping) and "review_id" in decision:
        return [str(cast("Any", decision)["review_id"])]
    return answers


async def _write_down(
    saver: BaseCheckpointSaver[Any] | None,
    root: CheckpointTuple | None,
    chosen: Sequence[tuple[Asked, Any]],
) -> dict[str, Any]:
    """Save each answer beside its call's checkpoint. Return the other answers by interrupt id.

    An answer cannot be saved on a server, for a question of another library, or if the call's
    checkpoint was deleted. An answer without an interrupt id that an earlier run left is removed
    first, because LangGraph would give it to the next question.
    """
    own = [each for each in chosen if not is_of_other(each[0].namespace)]
    notes = [(asked, noted(given, asked.review_id)) for asked, given in own]
    others = [each for each in chosen if each not in own]
    by_id = {each.interrupt_id: await answer_to_other(each.value, given) for each, given in others}
    if saver is not None and root is not None:  # An answer that does not fit has raised before.
        await drop_plain_answer(saver, root)
    for asked, note in notes:
        if saver is None or not asked.is_saved:
            by_id[asked.interrupt_id] = note["value"]
        else:
            await write_answer(saver, asked.call, note)
    return by_id


async def _meant_by(
    decision: Any,
    thread_id: str,
    questions: Sequence[Asked],
    closed: Callable[[str | None], Awaitable[str]],
) -> str:
    """Return the review id that a decision names, or the id of the only open review."""
    if named := _named_in(decision, None):
        return next(iter(named))
    if len(questions) > 1:
        ids = ", ".join(f"{asked.review_id} ({asked.name})" for asked in questions)
        raise ValueError(
            f"thread {as_repr(thread_id)} has {len(questions)} open reviews: give "
            f"`answers={{review_id: decision}}` for some of {ids}."
        )
    if questions:
        return questions[0].review_id
    raise StaleDecision(f"thread {as_repr(thread_id)} has no open review: {await closed(None)}.")


async def _match(
    thread_id: str,
    questions: Sequence[Asked],
    answers: Mapping[str, Any],
    closed: Callable[[str | None], Awaitable[str]],
) -> list[tuple[Asked, Any]]:
    """Pair answers with open questions. Raise if a review is closed, before any answer is saved."""
    by_id = {asked.interrupt_id: asked for asked in questions}
    by_id |= {asked.review_id: asked for asked in questions}
    names: dict[str, str] = {}
    for name in answers:
        if name not in by_id:
            by_whom = await closed(name)
            open_ids = ", ".join(asked.review_id for asked in questions) or "none"
            raise StaleDecision(
                f"review {as_repr(name, 80)} is not open on thread {as_repr(thread_id)} "
                f"(open: {open_ids}): {by_whom}."
            )
        if (first := names.setdefault(by_id[name].review_id, name)) != name:
            raise ValueError(
                f"`answers` has two decisions about the same review ({as_repr(first, 80)} and "
                f"{as_repr(name, 80)}): give only one."
            )
    return [(by_id[name], given) for name, given in answers.items()]
