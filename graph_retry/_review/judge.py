"""Judge an answer: the decision it makes about the open question, or why it makes none."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

from graph_retry._issues import cut, format_issues, json_problem, literal, text_of
from graph_retry._review.decision import Decision, approve, edit, reject, respond
from graph_retry._review.dialects import Answer, interpret
from graph_retry._review.edits import changes_of, merged
from graph_retry._review.forms.strict_json import NotJsonError, read_json
from graph_retry._review.question import Accepted, Question, Refused, UnusableAnswerError

MAX_PROBLEM = 2_000
"""Characters of a refusal's text."""


def judge(answer: Any, question: Question) -> Accepted | Refused:
    """Hold any answer against the question; a bad one never raises.

    An edit is merged onto what was shown: the suggested params if there are any. One that changes
    nothing counts as an approval, where approving is allowed.

    Example:
        >>> from graph_retry._params.codec import ParamsCodec
        >>> question = Question(
        ...     name="extract", attempt=2, review_id="r2", params={"temperature": 0.7},
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "30 s"},
        ...     codec=ParamsCodec(dict),
        ... )
        >>> judge({"type": "edit", "params": {"temperature": "0.2"}}, question).params
        {'temperature': 0.2}
        >>> judge({"type": "edit", "params": {"temperature": "warm"}}, question)
        Refused(problem='`temperature` expects a number, not "warm".')
    """
    try:
        said = interpret(answer)
        told = _bound(said, question)
        verdict = _decided(said, question)
    except UnusableAnswerError as problem:
        return Refused(cut(str(problem), MAX_PROBLEM))
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001  a caller's validator may raise anything, and a
        # review that fails on an answer would fail on it for ever
        what = f"The answer could not be checked: {type(error).__name__}"
        return Refused(cut(f"{what}: {text_of(error)}", 500))
    reason = {"message": said.message} if said.message is not None else {}
    decision = cast("Decision", {**verdict.decision, **reason, **told})
    return Accepted(decision, verdict.params, verdict.types)


def _bound(said: Answer, question: Question) -> dict[str, Any]:
    """Return what an answer tells of itself; it must be for this question, and new."""
    told = dict(said.told)
    for key in ("decision_id", "by", "channel"):
        if not isinstance(told.get(key, ""), str) or len(told.get(key, "")) > 200:
            what = f"`{key}` must be text of up to 200 characters"
            raise UnusableAnswerError(f"{what}, not {literal(told[key], 80)}.")
    titles = (question.title.strip(), question.name.strip())
    stale = [f"for {literal(each, 80)}" for each in said.echoes if str(each).strip() not in titles]
    for key, current in (("attempt", question.attempt), ("review_id", question.review_id)):
        # A form's `"2"` and JavaScript's `2.0` are attempt 2.
        if key in told and str(told[key]).strip().removesuffix(".0") != str(current):
            stale.append(f"for {key.removesuffix('_id')} {literal(told[key], 80)}")
        elif key in told:
            told[key] = current
    if told.get("decision_id") in question.seen_decisions:
        stale.append(f"the decision {literal(told['decision_id'], 80)}, which was already applied")
    if stale:
        raise UnusableAnswerError(
            f"The answer is stale: it is {stale[0]}. Attempt {question.attempt} is under review "
            f"now, as review {literal(question.review_id, 80)}: look at it and answer again."
        )
    return told


def _decided(said: Answer, question: Question) -> Accepted:
    allowed = ", ".join(question.offered)
    if said.type not in question.offered:
        kind = said.type.capitalize()
        raise UnusableAnswerError(f"{kind} is not allowed here. Allowed are {allowed}.")
    if said.type == "reject":
        return Accepted(reject())
    if said.type == "respond":
        return Accepted(respond(_checked_output(said.data, question)))
    changes = changes_of(said, question)
    if said.type == "approve" and changes:
        raise UnusableAnswerError(
            'To approve is to take the params as shown, but the answer changes some: send {"type": '
            '"edit", "params": {…}} to change them.'
        )
    # What was shown is checked, too: the params type may have changed since it was saved.
    encoded = merged(changes, question)
    decision = approve() if not changes and "approve" in question.allowed else edit()
    if changes:
        decision["params"] = {name: encoded.view.get(name) for name in changes}
    return Accepted(decision, encoded.view, encoded.types)


def _checked_output(output: Any, question: Question) -> Any:
    """Return the output as state keeps it, or what it says as JSON where only that is valid."""
    checked = question.check_output(output)
    if not checked.ok and isinstance(output, str):
        with suppress(NotJsonError):
            read = question.check_output(read_json(output))
            checked = read if read.ok else checked
    if not checked.ok:
        raise UnusableAnswerError(f"The output is not valid:\n{format_issues(checked.issues)}")
    if problem := json_problem(checked.jsonable):
        raise UnusableAnswerError(f"The output cannot be kept:\n{format_issues([problem])}")
    return checked.jsonable
