"""Judge an answer to the open question: return its decision and effect, or the reason to refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

from graph_retry._awaiting import AsyncUnderSyncError
from graph_retry._issues import SHOWN_ISSUES, cut, literal, wrap_error
from graph_retry._review.answers import Decision
from graph_retry._review.clients.dialects import how_to_answer, interpret
from graph_retry._review.decisions import ROWS, Accepted, offered, why_not_offered
from graph_retry._review.question import (
    NoDecisionError,
    Question,
    Refused,
    Said,
    UnusableAnswerError,
)

MAX_PROBLEM = 2_000
"""Maximum characters of a refusal's text."""


async def judge(answer: Any, question: Question) -> Accepted | Refused:
    """Check an answer against its question; a bad answer never raises.

    An edit is merged onto the shown params, which are the suggested ones if there is a suggestion.
    An edit that changes nothing counts as an approval, if approvals are allowed.

    Example:
        >>> from graph_retry._awaiting import run_sync
        >>> from graph_retry._params.codec import ParamsCodec
        >>> question = Question(
        ...     function_name="extract", attempt=2, review_id="r2", params={"temperature": 0.7},
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "30 s"},
        ...     codec=ParamsCodec(dict),
        ... )
        >>> run_sync(judge({"type": "edit", "params": {"temperature": "0.2"}}, question)).params
        {'temperature': 0.2}
        >>> run_sync(judge({"type": "edit", "params": {"temperature": "warm"}}, question)).problem
        '`temperature` expects a number, not "warm".'
    """
    try:
        return await _judged(answer, question)
    except (GraphBubbleUp, AsyncUnderSyncError):
        raise  # `GraphBubbleUp` is LangGraph's control flow, such as an interrupt in a validator.
    except Exception as error:  # noqa: BLE001 - it would come again at each resume
        problem = f"The answer could not be checked: {wrap_error(error)[0]['message']}"
        return Refused(cut(problem, 500))


async def _judged(answer: Any, question: Question) -> Accepted | Refused:
    try:
        said = interpret(answer, of_valid=question.failure is None, offered=offered(question))
        binding = _checked_binding(said, question)
        verdict = await _decided(said, question)
    except NoDecisionError as problem:
        return Refused(cut(f"{problem} {how_to_answer(offered(question))}", MAX_PROBLEM))
    except UnusableAnswerError as problem:
        return Refused(cut(str(problem), MAX_PROBLEM), problem.kept, problem.issues[:SHOWN_ISSUES])
    reason = {"message": said.message} if said.message is not None else {}
    decision = cast("Decision", {**verdict.decision, **reason, **binding})
    return replace(verdict, decision=decision)


def _checked_binding(said: Said, question: Question) -> dict[str, Any]:
    """Check that an answer is for this question and was not applied before; return its ids."""
    binding = dict(said.binding)
    for key in ("decision_id", "by", "channel"):
        text = binding.get(key, "")
        if not isinstance(text, str) or len(text) > 200:
            what = f"`{key}` must be text of up to 200 characters"
            raise UnusableAnswerError(f"{what}, not {literal(text, 80)}.")
    stale = [
        f"for {literal(title, 80)}" for title in said.titles if not question.has_title(str(title))
    ]
    for key, current in (("attempt", question.attempt), ("review_id", question.review_id)):
        # A form sends `"2"` and JavaScript `2.0` for attempt 2.
        if key in binding and str(binding[key]).strip().removesuffix(".0") != str(current):
            stale.append(f"for {key.removesuffix('_id')} {literal(binding[key], 80)}")
        elif key in binding:
            binding[key] = current
    if (decision_id := binding.get("decision_id")) in question.seen_decisions:
        stale.append(f"the decision {literal(decision_id, 80)}, which was already applied")
    if stale:
        raise UnusableAnswerError(
            f"The answer is stale: it is {stale[0]}. Attempt {question.attempt} is under review "
            f"now, as review {literal(question.review_id, 80)}: look at it and answer again."
        )
    return binding


async def _decided(said: Said, question: Question) -> Accepted:
    why = why_not_offered(question)[said.type]
    if why is not None:
        allowed = ", ".join(offered(question))
        kind = said.type.capitalize()
        raise UnusableAnswerError(f"{kind} is not allowed here: {why}. Allowed are {allowed}.")
    return await ROWS[said.type].decide(said, question)
