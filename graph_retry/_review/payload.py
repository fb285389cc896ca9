"""The value of a review's interrupt: one dict that every known client can render."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graph_retry._issues import cut, excerpt, issue
from graph_retry._review.answer_schema import response_schema
from graph_retry._review.description import describe, headline, one_line, shown_output
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
    graphical clients edit are what another call would use: the proposal if there is one. `output`
    is what a person may take. Everything but it, `params` and `suggested_params` is bounded, a
    field at a time in the forms. A question about a valid output has no `failure`.

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
    failure, error, told = question.failure, "", ""
    if failure is not None:
        told = failure["message"]
        failure = {**failure, "message": cut(told, MAX_ERROR)}
        error = cut(f"{failure['type']}: {failure['message']}", MAX_ERROR)
    summary = one_line(shown_output(question) if failure is None else told, 300)
    return {
        "type": INTERVENTION,
        "function_name": question.name,
        "attempt_count": question.attempt,
        "error": error,
        "params": question.params,
        "suggested_params": question.suggested,
        "suggested_by": question.suggested_by,
        "failure": failure,
        "issues": issues,
        "raw_output": raw and excerpt(raw, MAX_RAW),
        "output": question.output and question.output["value"],
        "repairs": question.repairs[:MAX_ISSUES],
        "lossless": question.lossless,
        "diff": question.diff,
        "note": question.note and cut(question.note, MAX_ERROR),
        "labels": question.labels,
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
            "allow_respond": not {"reject", "respond", "comment"}.isdisjoint(offered),
            "allow_ignore": "reject" in offered,
        },
        "description": description,
        "message": title if question.problem else f"{title}: {summary}",
        "reason": INTERVENTION,
        "response_schema": response_schema(question),
    }
