"""Take one answer to the open question: from `resume`, an automatic reviewer, or an `interrupt`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from graph_retry._asking.questions import question_of
from graph_retry._asking.reviewers import Passed, ask_reviewers, notify
from graph_retry._langgraph.open_reviews import insert, row_of
from graph_retry._langgraph.run_config import (
    call_namespace,
    current_saver,
    current_thread,
    forget_plain_answer,
    plain_answer_hidden,
)
from graph_retry._langgraph.shown import look_at_shown, sent_at, was_sent_before
from graph_retry._review.clients.payload import build_payload
from graph_retry._review.clients.table import channel_of
from graph_retry._review.review import Question
from graph_retry._run.first_checks import NO_CHECKPOINTER
from graph_retry._run.keeping import whole_here
from graph_retry._run.plan import Plan
from graph_retry._run.step import StepInput
from graph_retry._state.going_back import Fork, fork_of, forked, goes_back
from graph_retry._state.position import ANSWER, REVIEWED, Loop
from graph_retry._texts.wording import counted
from graph_retry.errors import InterventionRequired
from graph_retry.records import Attempt, author_role

OUTSIDE = (
    "this call is not made in a LangGraph run, which alone can pause: make it in a node of a graph "
    "that has a checkpointer, or pass `review=False`"
)
LOST_CONTEXT = (
    ". If a node started this thread, the thread has lost the context of the run: submit "
    "`contextvars.copy_context().run` and the function to the `ThreadPoolExecutor`, or use "
    "`aretry_llm_call` with `gather_calls`"
)
LEFT_OVER = (
    "This answer was left over from an earlier question: it was sent before anybody could see this "
    "one, so it was not taken. Please answer again."
)


@dataclass(eq=False)
class Taken:
    """An answer and its question.

    author: Who answered: `human`, `agent:NAME`, `rewind`, or `system` for a default decision.
    loop: The position from which the decision continues.
    fork: The earlier attempt that the answer is about; None if it is about the last attempt.
    problem: Why the answer must be refused, if this is known before the answer is read.
    came_at: When the answer was given (ISO 8601, UTC); None if unknown.
    passed: The automatic reviewers that raised an error instead of deciding.
    """

    question: Question
    value: Any
    loop: Loop
    author: str = "human"
    fork: Fork | None = None
    problem: str | None = None
    came_at: str | None = None
    passed: list[Passed] = field(default_factory=list[Passed])

    @property
    def by_agent(self) -> bool:
        """Whether automatic reviewers were asked for this answer; a person may be asked next."""
        return author_role(self.author) == "agent"

    @property
    def channel(self) -> str:
        """The client through which the answer came, such as `python`."""
        role = author_role(self.author)
        return role if role in ("agent", "system") else channel_of(self.value)


async def take_answer(given: StepInput) -> Taken:
    """Take the answer that `resume` wrote, or ask the automatic reviewers, then a person."""
    plan, loop, attempts = given.plan, given.loop, given.attempts
    # `resume` may have written an answer into state before this run. This answer is taken without
    # asking anybody.
    recorded: Any = given.state.get(ANSWER)
    if recorded is not None and (fork := await _fork(recorded["value"], attempts)):
        return _back(plan, loop, fork, recorded.get("refused"))
    question = question_of(plan, loop, attempts, given.params, given.state.get(REVIEWED))
    if recorded is not None:
        refused, came_at = recorded.get("refused"), recorded.get("at")
        return Taken(question, recorded["value"], loop, problem=refused, came_at=came_at)
    if plan.settings.reviewer and loop["review"] and loop["review"]["agents"] is None:
        author, value, passed = await ask_reviewers(plan, question, attempts)
        return Taken(question, value, loop, author=author, passed=passed)
    value, was_shown = await _ask_person(given, question)
    if not was_shown:
        return Taken(question, value, loop, problem=LEFT_OVER)
    if fork := await _fork(value, attempts):
        return _back(plan, loop, fork)
    came_at = sent_at(given.run.caller)
    return Taken(question, value, loop, came_at=came_at)


async def _fork(value: Any, attempts: list[Attempt]) -> Fork | None:
    return fork_of(value, await whole_here(attempts)) if goes_back(value) else None


def _back(plan: Plan[Any], loop: Loop, fork: Fork, problem: str | None = None) -> Taken:
    """Return an answer about an earlier attempt, with the question as it was at that attempt."""
    at = forked(loop, fork.params)
    question = question_of(plan, at, fork.attempts, fork.params)
    # An attempt that is made again does not count against `max_attempts`.
    if fork.again:
        question = replace(question, used_up=None)
    problem = problem or fork.problem
    return Taken(question, fork.answer, at, author="rewind", fork=fork, problem=problem)


async def _ask_person(given: StepInput, question: Question) -> tuple[Any, bool]:
    """Ask a person by an `interrupt`.

    Returns the answer, and whether its author can have seen this question. If the author cannot
    have seen the question, the answer was left over from an earlier question.
    """
    plan, attempts = given.plan, given.attempts
    saver = _require_checkpointer(given, attempts)
    begun = get_runtime().execution_info
    place = {"checkpoint_ns": call_namespace(), "checkpoint_id": begun and begun.checkpoint_id}
    payload: dict[str, Any] = {**build_payload(question), **place}
    shown_schema: dict[str, Any] = payload["response_schema"]
    # A resumed run repeats all code before `interrupt`. This is safe, because `notify` runs as a
    # task, and a row that is written again replaces the same row.
    if not _was_left_open(given.loop):
        await notify(plan, payload, attempts)
    here = (current_thread(), call_namespace(), question.review_id, question.asked_at)
    await insert(saver, row_of(*here))
    shown = await look_at_shown(question.review_id, given.run.slot.execution.reads)
    # LangGraph would give the waiting answer to this question, although it is for another one.
    if shown.is_for_another:
        with plain_answer_hidden():
            return interrupt(payload, response_schema=shown_schema), True
    value = interrupt(payload, response_schema=shown_schema)
    forget_plain_answer()
    given_before = await shown.note_given(value)
    too_early = was_sent_before(question.asked_at)
    return value, shown.is_ours and not given_before and not too_early


def _was_left_open(loop: Loop) -> bool:
    """Return whether the question is only asked again because a person deferred or assigned it.

    `notify` is not called for such a question.
    """
    review = loop["review"]
    return review is not None and bool(review["before"]) and review["problem"] is None


def _require_checkpointer(given: StepInput, attempts: list[Attempt]) -> BaseCheckpointSaver[Any]:
    """Return the checkpointer that will save the pause; raise if there is none."""
    saver = current_saver()
    if saver is not None:
        return saver
    failure = attempts[-1]["failure"]
    why = f"{failure['type']}: {failure['message']}" if failure else "a valid output"
    needed = (
        f"`{given.plan.settings.name}` needs a person after {counted(len(attempts), 'attempt')}"
    )
    missing = NO_CHECKPOINTER
    if given.run.caller is None:
        is_main = threading.current_thread() is threading.main_thread()
        missing = OUTSIDE if is_main else OUTSIDE + LOST_CONTEXT
    raise InterventionRequired(f"{needed} ({why}), but {missing}.", attempts)
