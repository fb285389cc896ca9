"""Judge an answer to the open question: return its decision and effect, or the reason to refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

from graph_retry._awaiting import AsyncUnderSyncError
from graph_retry._issues import cut, literal, wrap_error
from graph_retry._review.answers import Decision, Reading, Refused
from graph_retry._review.clients.dialects import BINDING, interpret
from graph_retry._review.decisions import ROWS, Accepted, offered, why_not_offered
from graph_retry._review.review import Question


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
        reading = interpret(answer, of_valid=question.failure is None, offered=offered(question))
        _check_binding(reading, question)
        kind = reading.decision["type"]
        why = why_not_offered(question)[kind]
        if why is not None:
            allowed = ", ".join(reading.offered)
            raise Refused(f"{kind.capitalize()} is not allowed here: {why}. Allowed are {allowed}.")
        verdict = await ROWS[kind].decide(reading, question)
    except Refused as refused:
        return refused
    except (GraphBubbleUp, AsyncUnderSyncError):
        raise  # `GraphBubbleUp` is LangGraph's control flow, such as an interrupt in a validator.
    except Exception as error:  # noqa: BLE001 - it would come again at each resume
        problem = f"The answer could not be checked: {wrap_error(error)[0]['message']}"
        return Refused(cut(problem, 500))
    said = {key: part for key, part in reading.decision.items() if key in ("message", *BINDING)}
    return replace(verdict, decision=cast("Decision", {**verdict.decision, **said}))


def _check_binding(reading: Reading, question: Question) -> None:
    """Check that an answer is for this question, and that it was not applied before."""
    decision: dict[str, Any] = {**reading.decision}
    for key in ("decision_id", "by", "channel"):
        text = decision.get(key, "")
        if not isinstance(text, str) or len(text) > 200:
            what = f"`{key}` must be text of up to 200 characters"
            raise Refused(f"{what}, not {literal(text, 80)}.")
    stale = [
        f"for {literal(title, 80)}"
        for title in reading.titles
        if title is not None and not question.has_title(str(title))
    ]
    if question.title.endswith(f"[{decision.get('review_id')}]"):
        decision["review_id"] = question.review_id
    for key, current in (("attempt", question.attempt), ("review_id", question.review_id)):
        # For attempt 2, a form sends the text `"2"`, and JavaScript may send `2.0`.
        if key in decision and str(decision[key]).strip().removesuffix(".0") != str(current):
            stale.append(f"for {key.removesuffix('_id')} {literal(decision[key], 80)}")
        elif key in decision:
            decision[key] = current
    if (decision_id := decision.get("decision_id")) in question.seen_decisions:
        stale.append(f"the decision {literal(decision_id, 80)}, which was already applied")
    if stale:
        raise Refused(
            # The question is asked again under a new id, so this text cannot name it.
            f"The answer is stale: it is {stale[0]}, and another question is open now. "
            "Look at it and answer again."
        )
    reading.decision = cast("Decision", decision)
