"""Ask the open question, and take one answer to it from wherever it comes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from graph_retry._attempts import decision_ids, params_at
from graph_retry._engine.fork import Fork, fork_of, forked, goes_back
from graph_retry._engine.keeping import whole_here
from graph_retry._engine.open_reviews import Note, note_asked
from graph_retry._engine.plan import Plan
from graph_retry._engine.reviewers import ask_reviewers, notify
from graph_retry._engine.run_config import current_saver, plain_answer_hidden
from graph_retry._engine.shown import look_at_shown
from graph_retry._engine.state import (
    ANSWER,
    REVIEWED,
    Loop,
    OpenReview,
    call_namespace,
    current_thread,
)
from graph_retry._engine.step import StepInput
from graph_retry._issues import json_problem
from graph_retry._output.schema_of_params import SchemaOfParams
from graph_retry._params.codec import Encoded
from graph_retry._params.patch import readable_diff
from graph_retry._redact import redacted
from graph_retry._review.decision import DECISION_TYPES, DecisionType
from graph_retry._review.dialects import channel_of
from graph_retry._review.payload import build_payload
from graph_retry._review.question import Question
from graph_retry.errors import InterventionRequired
from graph_retry.hooks._feedback import Feedback, comment_field, with_comment
from graph_retry.records import Attempt, Issue

LEFT_OVER = (
    "This answer was left over from an earlier question: it was sent before anybody could see this "
    "one, so it was not taken. Please answer again."
)


@dataclass(eq=False, kw_only=True)
class Taken:
    """An answer, what it answers, and where it came from.

    `loop` is the position that a decision goes on from. `problem` tells why there is no good
    answer, if that is known already: where `resume` refused it, or an automatic reviewer failed.
    `came_at` is when `resume` wrote it down.
    """

    question: Question
    value: Any
    author: str
    channel: str
    loop: Loop
    fork: Fork | None = None
    problem: str | None = None
    came_at: str | None = None

    @property
    def by_agent(self) -> bool:
        """Tell whether an automatic reviewer was asked, which a person comes after."""
        return self.author.startswith("agent")


async def take_answer(given: StepInput) -> Taken:
    """Read the answer that `resume` wrote, or ask the automatic reviewers, or else a person."""
    plan, loop, attempts = given.plan, given.loop, given.attempts
    recorded: Any = given.state.get(ANSWER)
    if recorded is not None and (fork := await _fork(recorded["value"], attempts)):
        return _back(plan, loop, fork, recorded.get("refused"))
    question = question_of(plan, loop, attempts, given.params, given.state.get(REVIEWED))
    if recorded is not None:
        refused, came_at = recorded.get("refused"), recorded.get("at")
        return _of_person(question, loop, recorded["value"], refused, came_at)
    if plan.settings.reviewer and loop["review"] and loop["review"]["agent"] is None:
        author, value, problem = await ask_reviewers(plan, question, attempts)
        return Taken(
            question=question,
            value=value,
            author=author,
            channel="agent",
            loop=loop,
            problem=problem,
        )
    value, was_shown = await _ask_person(plan, question, attempts)
    if not was_shown:
        return _of_person(question, loop, value, LEFT_OVER)
    fork = await _fork(value, attempts)
    return _back(plan, loop, fork) if fork else _of_person(question, loop, value)


async def _fork(value: Any, attempts: list[Attempt]) -> Fork | None:
    return fork_of(value, await whole_here(attempts)) if goes_back(value) else None


def _of_person(
    question: Question,
    loop: Loop,
    value: Any,
    problem: str | None = None,
    came_at: str | None = None,
) -> Taken:
    return Taken(
        question=question,
        value=value,
        author="human",
        channel=channel_of(value),
        loop=loop,
        problem=problem,
        came_at=came_at,
    )


def _back(plan: Plan[Any], loop: Loop, fork: Fork, problem: str | None = None) -> Taken:
    """Return an answer to an earlier attempt than the one under review."""
    at = forked(loop)
    question = question_of(plan, at, fork.attempts, fork.params)
    if fork.again:  # the attempt is taken back, so it does not count as used
        question = replace(question, allowed=plan.settings.allowed_decisions)
    return Taken(
        question=question,
        value=fork.answer,
        author="rewind",
        channel=channel_of(fork.answer),
        loop=at,
        fork=fork,
        problem=problem or fork.problem,
    )


async def _ask_person(
    plan: Plan[Any], question: Question, attempts: list[Attempt]
) -> tuple[Any, bool]:
    """Return the answer, and whether anybody can have seen the question it came for."""
    saver = require_checkpointer(plan.settings.name, attempts)
    here = get_runtime().execution_info
    place = {"checkpoint_ns": call_namespace(), "checkpoint_id": here and here.checkpoint_id}
    payload: dict[str, Any] = {**build_payload(question), **place}
    shown_schema: dict[str, Any] = payload["response_schema"]
    await notify(plan, payload, attempts)
    note = Note(
        thread_id=current_thread() or "",
        namespace=call_namespace(),
        review_id=question.review_id,
        asked_at=question.asked_at or "",
    )
    await note_asked(saver, note)
    shown = await look_at_shown(question.review_id)
    if shown.is_for_another:
        with plain_answer_hidden():
            return interrupt(payload, response_schema=shown_schema), True
    value = interrupt(payload, response_schema=shown_schema)
    given_before = await shown.note_given(value)
    return value, shown.is_ours and not given_before


def question_of(
    plan: Plan[Any],
    loop: Loop,
    attempts: list[Attempt],
    params: Encoded,
    output: dict[str, Any] | None = None,
) -> Question:
    """Make the open question from state; `output` is what may be taken."""
    record, review = attempts[-1], loop["review"]
    if review is None or (record["failure"] is None and output is None):
        msg = f"`{plan.settings.name}` reached `review` with nothing to ask; state was edited."
        raise ValueError(msg)
    earlier = params_at(attempts[:-1])
    suggested = review["suggested"] and _known_fields(plan, review["suggested"])
    params = Encoded(_known_fields(plan, params.view), params.types)
    before, after = (
        (params.view, suggested) if suggested else (earlier and earlier.view, params.view)
    )
    raw_output = _raw_text(record)
    shown = Encoded(suggested, review["suggested_types"]) if suggested else params
    redact, names = plan.settings.redact, plan.codec.names
    before, after = redacted(before, redact, names), redacted(after, redact, names)
    return Question(
        name=plan.settings.name,
        attempt=record["number"],
        review_id=review["review_id"],
        failure=record["failure"],
        params=params.view,
        types=params.types,
        codec=plan.codec,
        suggested=suggested,
        suggested_types=review["suggested_types"],
        issues=record["issues"],
        repairs=record["repairs"],
        lossless=record["lossless"],
        output=output and {"value": _in_json(output["value"])},
        raw_output=raw_output,
        diff=readable_diff(before, after) if before is not None else [],
        note=_note(review),
        problem=review["problem"],
        asked_at=review["asked_at"],
        expires_at=review["expires_at"],
        allowed=_allowed(plan, loop, attempts),
        locked=plan.settings.locked,
        redact=redact,
        output_schema=_shown_schema(plan),
        **({"check_output": plan.validator.acheck} if plan.validator else {}),
        with_comment=_commenting(plan, shown, record["issues"], raw_output or ""),
        seen_decisions=(*loop["seen"], *decision_ids(attempts)),
    )


def _shown_schema(plan: Plan[Any]) -> dict[str, Any] | None:
    """Return the output's JSON Schema; one that params hold only if it has nothing private."""
    schema = plan.validator.schema if plan.validator else None
    is_public = not isinstance(plan.validator, SchemaOfParams)
    return schema if is_public or redacted(schema, plan.settings.redact) == schema else None


def _known_fields(plan: Plan[Any], view: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the params type no longer has: nobody could edit it away."""
    fields = plan.codec.fields
    if fields is None:
        return view
    return {name: value for name, value in view.items() if name in fields}


def require_checkpointer(name: str, attempts: list[Attempt]) -> BaseCheckpointSaver[Any]:
    """Return what saves the pause, and refuse to ask where nothing does."""
    saver = current_saver()
    if saver is not None:
        return saver
    failure = attempts[-1]["failure"]
    why = f"{failure['type']}: {failure['message']}" if failure else "a valid output"
    msg = (
        f"`{name}` needs a person after {len(attempts)} attempt(s) ({why}), but this run has no "
        "checkpointer to pause on: compile the graph with one, e.g. "
        "`builder.compile(checkpointer=InMemorySaver())`, or pass `review=False`."
    )
    raise InterventionRequired(msg, attempts)


def possible(plan: Plan[Any], loop: Loop, attempts: list[Attempt]) -> tuple[DecisionType, ...]:
    """Return what can be decided at all: another attempt only while there is one left."""
    budget, last = plan.settings.budget, attempts[-1]
    used_up = last["number"] >= plan.settings.max_attempts
    used_up = used_up or (budget is not None and budget.rounds_used_up(attempts, loop["spent"]))
    if not used_up:
        return DECISION_TYPES
    ending: tuple[DecisionType, ...] = ("respond", "reject", "accept")
    return ending if last["failure"] else ("approve", *ending)


def _allowed(plan: Plan[Any], loop: Loop, attempts: list[Attempt]) -> tuple[DecisionType, ...]:
    can = possible(plan, loop, attempts)
    return tuple(kind for kind in can if kind in plan.settings.allowed_decisions) or ("reject",)


def _note(review: OpenReview) -> str | None:
    """Tell a person why automation stopped and what an agent would have done."""
    notes = [review["note"]]
    if review["suggested_by"]:
        role, _, name = review["suggested_by"].partition(":")
        notes.append(f"the {role} {name} suggests other params".replace("  ", " "))
    agent = review["agent"]
    if agent and agent["problem"]:
        proposed = "" if agent["decision"] is None else f" proposed {agent['decision']!r}"
        notes.append(f"{agent['by']}{proposed}: {agent['problem']}")
    return "; ".join(note for note in notes if note) or None


def _commenting(
    plan: Plan[Any], shown: Encoded, issues: list[Issue], answer: str
) -> Callable[[str], Encoded] | None:
    """Return what tells the model a person's words, if the params have a field for that."""
    hook = plan.settings.feedback
    field = hook.field if isinstance(hook, Feedback) else None
    name = comment_field(shown.view, field, is_bare=plan.codec.is_bare)
    if name is None or name in plan.settings.locked:
        return None

    def commented(message: str) -> Encoded:
        params = plan.codec.decode(*shown)
        told = with_comment(params, message, answer=answer, issues=issues, field=field)
        return plan.codec.encode(told, owner="the params with a comment")

    return commented


def _in_json(output: Any) -> Any:
    """Return an output as a client can show it."""
    if isinstance(output, AIMessage) and output.tool_calls:
        calls = [{"name": call["name"], "args": call["args"]} for call in output.tool_calls]
        return {"text": str(output.text), "tool_calls": calls}
    if isinstance(output, BaseMessage):
        return str(output.text)
    return f"(a `{type(output).__name__}`)" if json_problem(output) else output


def _raw_text(record: Attempt) -> str | None:
    """Return what the model wrote, or a structured value it gave."""
    raw = record["raw"] or {}
    value = raw.get("value")
    if "text" in raw or value is None:
        return raw.get("text")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
