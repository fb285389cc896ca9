"""Judge an answer: the decision it makes about the open question, or why it makes none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

from graph_retry._awaiting import AsyncUnderSyncError
from graph_retry._issues import cut, format_issues, json_problem, literal, wrap_error
from graph_retry._json import is_array, is_object
from graph_retry._review.decision import Decision, accept, approve, comment, edit, reject, respond
from graph_retry._review.dialects import Answer, interpret
from graph_retry._review.edits import changes_of, merged
from graph_retry._review.forms.strict_json import NotJsonError, read_json
from graph_retry._review.question import Accepted, Question, Refused, UnusableAnswerError

MAX_PROBLEM = 2_000
"""Characters of a refusal's text."""


async def judge(answer: Any, question: Question) -> Accepted | Refused:
    """Hold any answer against the question; a bad one never raises.

    An edit is merged onto what was shown: the suggested params if there are any. One that changes
    nothing counts as an approval, where approving is allowed; of a valid output it is a call with
    the same params, unless a form sends it.

    Example:
        >>> from graph_retry._awaiting import run_sync
        >>> from graph_retry._params.codec import ParamsCodec
        >>> question = Question(
        ...     name="extract", attempt=2, review_id="r2", params={"temperature": 0.7},
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "30 s"},
        ...     codec=ParamsCodec(dict),
        ... )
        >>> run_sync(judge({"type": "edit", "params": {"temperature": "0.2"}}, question)).params
        {'temperature': 0.2}
        >>> run_sync(judge({"type": "edit", "params": {"temperature": "warm"}}, question))
        Refused(problem='`temperature` expects a number, not "warm".')
    """
    try:
        return await _judged(answer, question)
    except (GraphBubbleUp, AsyncUnderSyncError):
        raise
    except Exception as error:  # noqa: BLE001 - of a caller's validator; it would raise again for ever
        problem = f"The answer could not be checked: {wrap_error(error)[0]['message']}"
        return Refused(cut(problem, 500))


async def _judged(answer: Any, question: Question) -> Accepted | Refused:
    try:
        said = interpret(answer, of_valid=question.failure is None, offered=question.offered)
        binding = _checked_binding(said, question)
        verdict = await _decided(said, question)
    except UnusableAnswerError as problem:
        return Refused(cut(str(problem), MAX_PROBLEM))
    reason = {"message": said.message} if said.message is not None else {}
    decision = cast("Decision", {**verdict.decision, **reason, **binding})
    return replace(verdict, decision=decision)


def _checked_binding(said: Answer, question: Question) -> dict[str, Any]:
    """Return what binds an answer, as the question has it; it must be for this one, and new."""
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
        # A form's `"2"` and JavaScript's `2.0` are attempt 2.
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


async def _decided(said: Answer, question: Question) -> Accepted:
    allowed = ", ".join(question.offered)
    if said.type not in question.offered:
        kind = said.type.capitalize()
        raise UnusableAnswerError(f"{kind} is not allowed here. Allowed are {allowed}.")
    if said.type == "reject":
        return Accepted(reject())
    if said.type == "respond":
        return Accepted(respond(await _checked_output(said.data, question)))
    if said.type == "accept":
        return Accepted(accept())
    if said.type == "comment" and question.with_comment is not None and said.message is not None:
        return Accepted(comment(said.message), *question.with_comment(said.message))
    changes = changes_of(said, question)
    if said.type == "approve" and changes:
        raise UnusableAnswerError(
            'To approve is to take the params as shown, but the answer changes some: send {"type": '
            '"edit", "params": {…}} to change them.'
        )
    is_approval = said.type == "approve" or said.from_form or question.failure is not None
    is_approval = is_approval and not changes and "approve" in question.allowed
    if is_approval and question.failure is None:
        return Accepted(approve())
    # What was shown is checked, too: the params type may have changed since it was saved.
    encoded = merged(changes, question)
    decision = approve() if is_approval else edit()
    if changes:
        decision["params"] = {name: encoded.view.get(name) for name in changes}
    return Accepted(decision, encoded.view, encoded.types)


async def _checked_output(output: Any, question: Question) -> Any:
    """Return the output as state keeps it, or what it says as JSON where only that is valid."""
    checked, no_json = await question.check_output(output), ""
    if not checked.ok and isinstance(output, str):
        try:
            value = read_json(output)
        except NotJsonError as error:
            no_json = f"\nAs text it was taken because it is no JSON: {error}."
        else:
            read = await question.check_output(value)
            # What is wrong inside an object says more than that a text is no object.
            checked = read if read.ok or is_object(value) or is_array(value) else checked
    if not checked.ok:
        wrong = format_issues(checked.issues)
        raise UnusableAnswerError(f"The output is not valid:\n{wrong}{no_json}")
    if problem := json_problem(checked.jsonable):
        raise UnusableAnswerError(f"The output cannot be kept:\n{format_issues([problem])}")
    return checked.jsonable
