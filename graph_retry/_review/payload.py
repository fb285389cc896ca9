"""The value of a review's LangGraph interrupt: its shortened record, and the keys of clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graph_retry._issues import SHOWN_ISSUES, cut, excerpt, issue
from graph_retry._review.answer_schema import response_schema
from graph_retry._review.clients.client import Form
from graph_retry._review.clients.dialects import CLIENTS
from graph_retry._review.decisions import offered
from graph_retry._review.description import describe, one_line, shown_output, shown_title
from graph_retry._review.forms.restore import form_args
from graph_retry._review.question import Question
from graph_retry._review.redaction import displayed
from graph_retry._review.review import SHOWN, in_value
from graph_retry.records import INTERVENTION

MAX_ERROR = 1_000


def build_payload(question: Question) -> dict[str, Any]:
    """Return the interrupt value of a question.

    `params`, the hooks' `suggested_params`, and the `output` that a person may take are never
    shortened. Everything else is cut at a limit, including each field of a form. Graphical clients
    edit the params of the next call: the suggested ones, if there is a suggestion. A question about
    a valid output has no `failure`.

    Example:
        >>> from graph_retry._params.codec import ParamsCodec
        >>> payload = build_payload(Question(
        ...     function_name="extract", attempt=2, review_id="r", params={"n": 1},
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "no answer"},
        ...     codec=ParamsCodec(dict),
        ... ))
        >>> payload["message"]
        'extract failed (attempt 2): TimeoutError: no answer'
    """
    question = displayed(question)
    question = replace(question, issues=[issue(**one) for one in question.issues[:SHOWN_ISSUES]])
    title = shown_title(question)
    form = Form(
        title,
        title if question.problem else f"{question.headline}: {_summary(question)}",
        form_args(question.shown),
        describe(question),
        list(offered(question)),
        response_schema(question),
    )
    drawn = {key: part for client in CLIENTS for key, part in client.draw(form).items()}
    return {"type": INTERVENTION, **in_value(_bounded(question)), **drawn}


def _summary(question: Question) -> str:
    failure = question.failure
    return one_line(shown_output(question) if failure is None else failure["message"], 300)


def _bounded(question: Question) -> Question:
    failure, error = question.failure, ""
    if failure is not None:
        failure = {**failure, "message": cut(failure["message"], MAX_ERROR)}
        error = cut(f"{failure['type']}: {failure['message']}", MAX_ERROR)
    facts = {name: _at_most(shown.most, getattr(question, name)) for name, shown in SHOWN.items()}
    return replace(question, **{**facts, "failure": failure, "error": error})


def _at_most(most: int | None, fact: Any) -> Any:
    if most is None or not fact:
        return fact
    return excerpt(fact, most) if isinstance(fact, str) else fact[:most]
