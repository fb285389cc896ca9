"""Match answers with open reviews, write them to the thread, and continue it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Durability
from pydantic_core import to_json

from graph_retry._awaiting import AsyncUnderSyncError, is_async_only, sleep
from graph_retry._issues import literal
from graph_retry._json import is_object
from graph_retry._langgraph.answers import write_answer
from graph_retry._langgraph.checkpoints import check_clock, newest_checkpoint
from graph_retry._langgraph.shown import drop_plain_answer
from graph_retry._loop.graph import function_graph
from graph_retry._review.deadline import EXPIRE, now
from graph_retry._state import ANSWER
from graph_retry._threads.closed_reviews import has_expired, why_closed
from graph_retry._threads.graphs import get_state, invoke, is_local, saver_of, update_state
from graph_retry._threads.lock import ThreadLock, pauses
from graph_retry._threads.outcome import check_applied
from graph_retry._threads.remote_runs import RemoteRuns
from graph_retry._threads.reviews import (
    HOW_CONFIG,
    Waiting,
    find_reviews,
    thread_of,
)
from graph_retry._wording import quoted_with_article
from graph_retry.errors import StaleDecision

_ANSWER_IS_SAVED = (
    "`resume` is sync, but this graph or its checkpointer is async only. Your answer is saved: go "
    "on with `await aresume(graph, config)`, without a decision."
)


@dataclass(frozen=True)
class HeldThread:
    """A locked thread, with its answers written and ready to run.

    `chosen` are the answered reviews, and `open_before` the ids of all that were open.
    """

    graph: Any
    config: RunnableConfig
    lock: ThreadLock
    chosen: list[tuple[Waiting, Any]]
    open_before: frozenset[str]
    by_id: dict[str, Any]
    remote: RemoteRuns | None

    @property
    def given(self) -> Command[Any] | None:
        """The input with which the graph continues."""
        return Command(resume=self.by_id) if self.by_id else None

    def __enter__(self) -> None: ...

    def __exit__(self, *raised: object) -> None:
        """Release the lock."""
        self.lock.release()

    async def run(self, durability: Durability | None, context: Any) -> Any:
        """Continue the thread."""
        if self.remote is not None:
            given = {} if durability is None else {"durability": durability}
            state = await self.remote.answer(self.by_id, given)
        else:
            options: Any = {"durability": durability or "sync", "context": context}
            if self.chosen:
                await drop_plain_answer(saver_of(self.graph), thread_of(self.config) or "")
            try:
                state = await invoke(self.graph, self.given, self.config, **options)
            except (TypeError, asyncio.InvalidStateError) as error:
                if self.chosen and is_async_only(error):
                    raise AsyncUnderSyncError(_ANSWER_IS_SAVED) from error
                raise
        return state

    async def check_shown(self) -> None:
        """Finish a run whose result is not at hand; then check as `check` does."""
        shown = (await get_state(self.graph, self.config)).interrupts
        await self.check({"__interrupt__": shown})

    async def check(self, state: Any) -> None:
        """Raise if an answer was not applied, by the result of the run.

        Raises:
            AnswerRefused: If an answer was not applied: its question is asked again.
            StaleDecision: If an answer came too late.
        """
        await check_applied([review for review, _ in self.chosen], self.open_before, state)
        for review, given in self.chosen:
            lets_expire = is_object(given) and given.get("type") == EXPIRE
            if review.expires_at is None or lets_expire:
                continue
            if await has_expired(self.graph, self.config, review.review_id):
                raise StaleDecision(
                    f"review {review.review_id!r} expired at {review.expires_at}: its default "
                    "decision was applied, not your answer."
                )


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
) -> Any:
    """Do what `resume` does; on a server in the background, if that is wanted."""
    thread = await take_thread(
        graph, config, decision, answers, wait=wait, context=context, background=background
    )
    with thread:
        state = await thread.run(durability, context)
    if not background:
        await thread.check(state)
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
) -> HeldThread:
    """Take the lock of a thread and write answers to its reviews down."""
    thread_id = _checked(graph, config, decision, answers)
    if isinstance(cast("Any", wait), bool) or not isinstance(cast("Any", wait), int | float):
        raise TypeError(f"`wait` is {literal(wait, 80)}: give seconds, as a number.")
    lock = ThreadLock(getattr(graph, "checkpointer", None), thread_id)
    with ExitStack() as on_failure:
        on_failure.callback(lock.release)
        if decision is not None:  # it is for the present review, not for the next one
            answers = await _by_review(graph, config, decision, lock)
        lengths, waited = pauses(), 0.0
        while not await lock.try_acquire():
            await _match(graph, config, answers, lock)  # raises if waiting is pointless
            if waited >= wait:
                raise TimeoutError(
                    f"thread {thread_id!r} is still run by somebody else after `wait` = {wait} s; "
                    "nothing was written."
                )
            pause = next(lengths)
            await sleep(pause)
            waited += pause
        remote = None
        if not is_local(graph):
            remote = RemoteRuns(graph, config, context=context, wait=not background)
            await remote.look()
        chosen, open_before = await _match(graph, config, answers)
        by_id = await _write_down(graph, chosen)
        on_failure.pop_all()  # the thread is held from here on
    return HeldThread(graph, config, lock, chosen, open_before, by_id, remote)


def _checked(
    graph: Any, config: RunnableConfig, decision: Any, answers: Mapping[str, Any] | None
) -> str:
    """Check the arguments, and return the thread's id."""
    thread_id = thread_of(config)
    if decision is not None and answers is not None:
        raise TypeError("give `decision` for one review or `answers` for several, not both.")
    if isinstance(decision, Command):
        raise TypeError("`decision` is a `Command`: give what it would resume with, by itself.")
    if thread_id is None:
        raise ValueError(f"`config` names no thread: {HOW_CONFIG}.")
    if graph is None:
        raise ValueError(
            "`graph` is None, as in a review that was listed from a checkpointer alone: "
            "pass the graph that asked."
        )
    if answers is not None and (not isinstance(cast("Any", answers), Mapping) or not answers):
        raise TypeError(
            f"`answers` is {literal(answers, 80)}: pass {{review_id: decision}}, with an id of "
            "`pending_reviews`; or leave it out to run the thread on without an answer."
        )
    return thread_id


async def _write_down(graph: Any, chosen: Sequence[tuple[Waiting, Any]]) -> dict[str, Any]:
    """Write answers into the states of their calls; return those that cannot be, by interrupt."""
    by_id: dict[str, Any] = {}
    saver = saver_of(graph)
    notes = [_noted(given, review) for review, given in chosen]
    for (review, _), note in zip(chosen, notes, strict=True):
        place = function_graph(learns=True), review.thread_id, review.namespace
        if review.call_config is not None:
            if saver is not None:
                await check_clock(await newest_checkpoint(saver, *place[1:]))
            await update_state(graph, review.call_config, {ANSWER: note}, as_node="review")
        elif saver is None or not await write_answer(saver, *place, note):
            by_id[review.interrupt_id] = note["value"]
    return by_id


async def _by_review(
    graph: Any, config: RunnableConfig, decision: Any, lock: ThreadLock
) -> dict[str, Any]:
    """Return a decision by the id of the review it is meant for."""
    named = cast("Any", decision).get("review_id") if isinstance(decision, Mapping) else None
    if named is not None:
        return {str(named): decision}
    thread_id = thread_of(config)
    reviews = await find_reviews(graph, config, Waiting)
    if len(reviews) > 1:
        ids = ", ".join(f"{review.review_id} ({review.function_name})" for review in reviews)
        raise ValueError(
            f"thread {thread_id!r} has {len(reviews)} open reviews: give "
            f"`answers={{review_id: decision}}` for some of {ids}."
        )
    if not reviews:
        by_whom = await why_closed(graph, config, None, lock)
        raise StaleDecision(f"thread {thread_id!r} has no open review: {by_whom}.")
    return {reviews[0].review_id: decision}


async def _match(
    graph: Any,
    config: RunnableConfig,
    answers: Mapping[str, Any] | None,
    lock: ThreadLock | None = None,
) -> tuple[list[tuple[Waiting, Any]], frozenset[str]]:
    """Pair answers with open reviews, before any of them is written down; list all open ones.

    `lock` is that of the thread, unless it was acquired.
    """
    if not answers:
        return [], frozenset()
    reviews = await find_reviews(graph, config, Waiting)
    by_id = {review.interrupt_id: review for review in reviews}
    by_id |= {review.review_id: review for review in reviews}
    for name in answers:
        if name not in by_id:
            by_whom = await why_closed(graph, config, name, lock)
            open_ids = ", ".join(review.review_id for review in reviews) or "none"
            raise StaleDecision(
                f"review {name!r:.80} is not open on thread {thread_of(config)!r} "
                f"(open: {open_ids}): {by_whom}."
            )
    chosen = [(by_id[name], given) for name, given in answers.items()]
    return chosen, frozenset(review.review_id for review in reviews)


def _noted(answer: Any, review: Waiting) -> dict[str, Any]:
    """Note an answer with its time and review; `refused` is set if it cannot be stored."""
    if isinstance(answer, Mapping) and "type" in answer:
        answer = {"review_id": review.review_id, "channel": "python", **cast("Any", answer)}
    note: dict[str, Any] = {"value": cast("Any", answer), "at": now()}
    try:
        to_json(note, inf_nan_mode="constants")
    except ValueError as error:
        if "surrogates" not in str(error):
            name = getattr(note["value"], "__name__", type(note["value"]).__name__)
            how = "give what `approve()`, `edit(…)`, `reject(…)` or `respond(…)` returns, or JSON"
            came = f"the decision is {quoted_with_article(name)}"
            raise TypeError(f"{came}: {how} ({error!s:.200}).") from None
        text = json.dumps(note["value"], ensure_ascii=False, default=repr)
        # Replaced in keys, too: no storage keeps half a character there.
        note["value"] = json.loads(text.encode(errors="replace"))
        note["refused"] = "The answer holds half a character (a lone surrogate): write it anew."
    return note
