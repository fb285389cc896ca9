"""The value of a review's interrupt: one dict that every known client can render."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graph_retry._issues import cut, excerpt, issue
from graph_retry._review.answer_schema import response_schema
from graph_retry._review.description import describe, headline, one_line
from graph_retry._review.forms.restore import form_args
from graph_retry._review.question import Question
from graph_retry._review.redaction import displayed

INTERVENTION = "llm_intervention"
MAX_RAW = 2_000
MAX_ERROR = 1_000
MAX_ISSUES = 20


def build_payload(question: Question) -> dict[str, Any]:
    """Return the interrupt value of a question.

    `params` is the retry surface in full, `suggested_params` the hooks' proposal. The args that
    graphical clients edit are what an approval would use: the proposal if there is one. Everything
    but `params` and `suggested_params` is bounded, a field at a time in the forms.

    Example:
        >>> from graph_retry._params.codec import ParamsCodec
        >>> payload = build_payload(Question(
        ...     name="extract", attempt=2, review_id="r", params={"n": 1}, codec=ParamsCodec(dict),
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "no answer"},
        ... ))
        >>> payload["message"]
        'extract failed (attempt 2): TimeoutError: no answer'
    """
    question, is_redacted = displayed(question), question.redact is not None
    issues = [issue(**shown) for shown in question.issues[:MAX_ISSUES]]
    description, title = describe(replace(question, issues=issues)), headline(question)
    args = form_args(question.shown)
    offered, raw = list(question.offered), question.raw_output
    failure = {**question.failure, "message": cut(question.failure["message"], MAX_ERROR)}
    return {
        "type": INTERVENTION,
        "function_name": question.name,
        "attempt_count": question.attempt,
        "error": cut(f"{failure['type']}: {failure['message']}", MAX_ERROR),
        "params": question.params,
        "suggested_params": question.suggested,
        "failure": failure,
        "issues": issues,
        "raw_output": raw and excerpt(raw, MAX_RAW),
        "repairs": question.repairs[:MAX_ISSUES],
        "lossless": question.lossless,
        "diff": question.diff,
        "note": question.note and cut(question.note, MAX_ERROR),
        "redacted": is_redacted,
        "problem": question.problem and cut(question.problem, MAX_RAW),
        "review_id": question.review_id,
        "asked_at": question.asked_at,
        "expires_at": question.expires_at,
        "action_requests": [
            {
                "name": title,
                "args": args,
                "arguments": args,  # Agent Inbox reads this key, Agent Chat UI the other
                "description": description,
            }
        ],
        "review_configs": [{"action_name": title, "allowed_decisions": offered}],
        "action_request": {"action": title, "args": args},
        "config": {
            "allow_accept": "approve" in offered,
            "allow_edit": "edit" in offered,
            "allow_respond": "reject" in offered or "respond" in offered,
            "allow_ignore": "reject" in offered,
        },
        "description": description,
        "message": title
        if question.problem
        else f"{title}: {one_line(question.failure['message'], 300)}",
        "reason": INTERVENTION,
        "response_schema": response_schema(question),
    }
