"""Take one answer to the open question, from `resume`, an automatic reviewer or an `interrupt`.

LangGraph gives an answer without an interrupt id (a plain answer) to the first question of the run.
After a crash, or with several calls in a task, the person may have seen a different question.
Therefore this module first finds the question that the thread showed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.config import get_config
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from graph_retry._core.ground.functions.awaiting import SharedReads
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.ground.quoting import one_line
from graph_retry._core.ground.wording import counted
from graph_retry._core.langgraph.ends.run_end import at_run_end, idleness, node_without_saver
from graph_retry._core.langgraph.fork import read_once_a_step
from graph_retry._core.langgraph.open_questions import (
    drop_plain_answer,
    namespace_in,
    questions_of,
    sent_at,
    shown_at,
    was_sent_before,
)
from graph_retry._core.langgraph.run_config import (
    answers_by_id,
    call_namespace,
    current_saver,
    current_thread,
    has_answer,
    keep_newest_answer,
    plain_answer_hidden,
)
from graph_retry._core.langgraph.storage.checkpoints import (
    OpenReview,
    newest_checkpoint,
    open_review,
    waits_for,
)
from graph_retry._core.langgraph.storage.lock import hold_while_asking
from graph_retry._core.langgraph.storage.stores import Store, store_of
from graph_retry._core.loop.asking.questions import question_of
from graph_retry._core.loop.asking.reviewers import Passed, ask_reviewers, notify
from graph_retry._core.loop.run.first_checks import NO_CHECKPOINTER
from graph_retry._core.loop.run.keeping import whole_here
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.step import StepInput
from graph_retry._core.review.clients.payload import Brief, build_payload
from graph_retry._core.review.clients.table import channel_of
from graph_retry._core.review.review_record import Question
from graph_retry._core.state.position import ANSWER, REVIEWED, Loop
from graph_retry._core.state.rewinding import Rewound, is_rewind, position_of, rewound_by
from graph_retry.errors import AnswerRefused, InterventionRequired
from graph_retry.lossless._ground import error_text
from graph_retry.records import SAVED_NAMESPACE, Attempt, author_role

OUTSIDE = (
    "only a LangGraph run can pause, and this call is outside one: make the call in a node of "
    "a graph with a checkpointer, or pass `review=False`"
)
LOST_CONTEXT = (
    ". If a node started this OS thread, the thread lacks the run's context: submit "
    "`contextvars.copy_context().run` with the function to the `ThreadPoolExecutor`, or use "
    "`aretry_llm_call` with `gather_calls`"
)
STARTS_ANEW = (
    "the graph in node `{}` is compiled with `checkpointer=False`, so that LangGraph would start "
    "it anew with each answer: compile it without that argument, or pass `review=False`"
)
LEFT_OVER = (
    "This answer belongs to an earlier question: it was sent before this question was shown, "
    "so it was not used. Please answer again."
)


@dataclass(eq=False)
class Taken:
    """An answer, and the question that it answers.

    question: The question.
    value: The answer; None if no automatic reviewer decided.
    loop: The loop's own state to which the decision is applied.
    author: Who answered: `human`, `agent:NAME`, `rewind`, or `system` for a default decision.
    rewound: The earlier attempt that the answer is about; None if it is about the last attempt.
    problem: Why the answer must be refused, if this is known before the answer is read.
    came_at: When the answer was given (ISO 8601, UTC); None if unknown.
    passed: The automatic reviewers that raised an error, or returned no valid decision.
    """

    question: Question
    value: Any
    loop: Loop
    author: str = "human"
    rewound: Rewound | None = None
    problem: str | None = None
    came_at: str | None = None
    passed: list[Passed] = field(default_factory=list[Passed])

    @property
    def by_agent(self) -> bool:
        """Whether automatic reviewers were asked. If none decided, a person may be asked next."""
        return author_role(self.author) == "agent"

    @property
    def channel(self) -> str:
        """The client that sent the answer, such as `agent-inbox`; otherwise `agent` or `system`."""
        role = author_role(self.author)
        return role if role in ("agent", "system") else channel_of(self.value)


async def take_answer(given: StepInput) -> Taken:
    """Return one answer to the open question.

    An answer that `resume` has written into the state comes first. Without one, the automatic
    reviewers are asked. If no reviewer decides, a person is asked.
    """
    plan, loop, attempts = given.plan, given.loop, given.attempts
    # `resume` may have written an answer into state before this run. This answer is taken without
    # asking anybody.
    recorded: Any = given.state.get(ANSWER)
    if recorded is not None and (rewound := await _rewound(recorded["value"], attempts)):
        return _back(plan, loop, rewound, recorded.get("refused"))
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
    if rewound := await _rewound(value, attempts):
        return _back(plan, loop, rewound)
    came_at = sent_at(given.run.caller)
    return Taken(question, value, loop, came_at=came_at)


async def _rewound(value: Any, attempts: list[Attempt]) -> Rewound | None:
    return rewound_by(value, await whole_here(attempts)) if is_rewind(value) else None


def _back(plan: Plan[Any], loop: Loop, rewound: Rewound, problem: str | None = None) -> Taken:
    """Return an answer about an earlier attempt, with the question about that attempt."""
    at = position_of(loop, rewound.params)
    question = question_of(plan, at, rewound.attempts, rewound.params)
    # An attempt that is made again does not count against `max_attempts`.
    if rewound.again:
        question = replace(question, used_up=None)
    problem = problem or rewound.problem
    return Taken(question, rewound.answer, at, author="rewind", rewound=rewound, problem=problem)


async def _ask_person(given: StepInput, question: Question) -> tuple[Any, bool]:
    """Ask a person by `interrupt`; return the answer, and whether the person saw this question."""
    plan, attempts = given.plan, given.attempts
    saver = _require_checkpointer(given, attempts)
    begun = get_runtime().execution_info
    place = {SAVED_NAMESPACE: call_namespace(), "checkpoint_id": begun and begun.checkpoint_id}
    payload = Brief(build_payload(question), **place)
    shown_schema = Brief(payload["response_schema"])
    # A resumed run repeats all code before `interrupt`. This is safe, because `notify` runs as a
    # task, and an entry that is written again replaces the same entry.
    if not _was_left_open(given.loop):
        await notify(plan, payload, attempts)
    here = current_thread(), call_namespace()
    entry = open_review(*here, question.review_id, question.asked_at)
    with informing("the lock of the thread until this run has ended"):
        await _hold_thread(given, saver)
    with informing(f"the entry of review {question.review_id} in the table of open reviews"):
        if entry not in await _open_before(given, store_of(saver)):
            await store_of(saver).open(entry)
    execution = given.run.slot.execution
    shown = await _meant_by_answer(question.review_id, execution.reads, execution.settled)
    # The waiting plain answer is for a different question, so it is hidden from `interrupt`. An
    # answer that names the interrupt id of this question still arrives.
    if shown.is_for_another:
        with plain_answer_hidden():
            return interrupt(payload, response_schema=shown_schema), True
    if shown.is_late:
        return None, False
    keep_newest_answer()
    value = interrupt(payload, response_schema=shown_schema)
    _check_savable(value, saver, question.review_id, attempts)
    await shown.end_plain_answer()
    return value, shown.is_ours and not was_sent_before(question.asked_at)


def _check_savable(
    answer: Any, saver: BaseCheckpointSaver[Any], review_id: str, attempts: list[Attempt]
) -> None:
    """Refuse an answer that the checkpointer cannot save.

    LangGraph saves the answer together with this step. If the answer cannot be saved, the run ends
    with an error, and the review is lost. Therefore this check raises before anything is saved. No
    other answer makes the step raise.

    Raises:
        AnswerRefused: If the checkpointer's serializer cannot store the answer.
    """
    try:
        saver.serde.dumps_typed(answer)
    except Exception as error:
        told = one_line(f"{type(error).__name__}: {error_text(error)}", 200)
        raise AnswerRefused(
            f"The answer cannot be saved ({told}): give plain JSON, with integers of at most 64 "
            "bits. The model was not called, and the question is still open.",
            attempts,
            review_ids=[review_id],
        ) from error


async def _open_before(given: StepInput, store: Store) -> Collection[OpenReview]:
    """Return the thread's open reviews that the saver's table already lists.

    If one of several waiting branches is answered, LangGraph runs all these branches again. They
    share one read of the table. If the question must be new, the result is empty.
    """
    run = given.run
    if run.caller is None or not run.slot.is_saved or run.answered or not store.keeps_reviews:
        return ()
    around, thread_id = run.caller.get("configurable", {}), current_thread() or ""
    return await read_once_a_step(around, "rows", partial(store.open_in, thread_id))


async def _hold_thread(given: StepInput, saver: BaseCheckpointSaver[Any]) -> None:
    """Lock the thread, so that answers wait until the run that asks has ended."""
    caller, thread_id = given.run.caller, current_thread()
    if caller is None or thread_id is None:
        return
    around = caller.get("configurable", {})
    asking = await hold_while_asking(saver, thread_id, idleness(around))
    if asking is not None:
        at_run_end(around, asking.end)


def _was_left_open(loop: Loop) -> bool:
    """Return whether a question was only deferred or assigned, so that `notify` is not called."""
    review = loop["review"]
    return review is not None and bool(review["before"]) and review["problem"] is None


def _require_checkpointer(given: StepInput, attempts: list[Attempt]) -> BaseCheckpointSaver[Any]:
    """Return the checkpointer that will save the pause of the call.

    Raises:
        InterventionRequired: If there is no checkpointer, or if an answer could not continue the
            call.
    """
    saver = current_saver()
    if saver is None:
        missing = NO_CHECKPOINTER
        if given.run.caller is None:
            is_main = threading.current_thread() is threading.main_thread()
            missing = OUTSIDE if is_main else OUTSIDE + LOST_CONTEXT
    elif (node := node_without_saver(get_config().get("configurable", {}))) is not None:
        missing = STARTS_ANEW.format(node)
    else:
        return saver
    failure = attempts[-1]["failure"]
    why = f"{failure['type']}: {failure['message']}" if failure else "a valid output"
    needed = (
        f"`{given.plan.settings.name}` needs a person after {counted(len(attempts), 'attempt')}"
    )
    raise InterventionRequired(f"{needed} ({why}), but {missing}.", attempts)


class _Shown(NamedTuple):
    """Whether the answer that a run brings belongs to the question that the call asks next.

    is_ours: Whether an answer from `interrupt` belongs to this question: the thread has shown it,
        or the run has brought no answer so far.
    is_for_another: Whether the run's waiting answer belongs to a different question.
    is_late: Whether the run's answer belongs to a question of this call that is already answered.
    """

    is_ours: bool = True
    is_for_another: bool = False
    is_late: bool = False
    saver: BaseCheckpointSaver[Any] | None = None
    thread: CheckpointTuple | None = None

    async def end_plain_answer(self) -> None:
        """Remove a plain answer from the thread after a question has taken it.

        LangGraph keeps a plain answer until the outermost node ends. If the thread ran again, the
        next question would get this answer.
        """
        if self.saver is not None and self.thread is not None:
            await drop_plain_answer(self.saver, self.thread)


async def _meant_by_answer(review_id: str, reads: SharedReads, settled: set[str]) -> _Shown:
    """Find the question to which the run's answer belongs, before `interrupt` takes the answer.

    The calls of the node share one read of the thread, because the answer is older than the run.
    `settled` has the ids of the reviews whose answers this run has applied or refused. The id of a
    late answer is added.
    """
    saver, thread_id, here = current_saver(), current_thread() or "", call_namespace()
    if saver is None or not has_answer():
        return _Shown()
    thread = await reads.get("thread", partial(newest_checkpoint, saver, thread_id, ""))
    for asked, question, _ in shown_at(thread):
        earlier = question["review_id"]
        is_answered = asked.id in answers_by_id() and earlier not in settled
        if is_answered and earlier != review_id and namespace_in(question) == here:
            settled.add(earlier)
            return _Shown(is_late=True)
    questions = list(questions_of(thread))
    if any(question.get("review_id") == review_id for question in questions):
        return _Shown(saver=saver, thread=thread)
    for question in questions:
        namespace = namespace_in(question) if question else None
        if namespace == here:
            continue  # The call already has the answer to this earlier question.
        call = None if namespace is None else await newest_checkpoint(saver, thread_id, namespace)
        # A question without a namespace comes from an `interrupt` of other code, and still waits.
        if call is None or waits_for(call, question.get("review_id")):
            return _Shown(is_ours=False, is_for_another=True)
    return _Shown(is_ours=False, saver=saver, thread=thread)
