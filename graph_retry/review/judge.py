"""Judge an answer: the decision it makes about the open question, or why it makes none."""

from typing import Any

from graph_retry.records import Issue
from graph_retry.review.binding import Binding, check_binding, check_echoes, read_binding
from graph_retry.review.decision import Decision
from graph_retry.review.dialects import MISSING, Answer, interpret
from graph_retry.review.edits import changes_of, merged
from graph_retry.review.excerpt import excerpt
from graph_retry.review.field_kinds import ANY_KIND, kinds_of
from graph_retry.review.guarded import guarded
from graph_retry.review.plain_json import NotJsonError, fits_checkpoint, read_json
from graph_retry.review.question import Accepted, Question, Refused, UnusableAnswerError
from graph_retry.review.unwrap import unwrap
from graph_retry.validate.issues import format_issues

MAX_PROBLEM = 2_000
"""Characters of a refusal's text."""


def judge(answer: Any, question: Question) -> Accepted | Refused:
    """Hold any answer against the question; a bad one never raises.

    An edit is merged onto what was shown: the suggested params if there are any. One that changes
    nothing counts as an approval, where approving is allowed.

    Example:
        >>> from graph_retry.params.codec import ParamsCodec
        >>> question = Question(
        ...     name="extract", attempt=2, review_id="r2", params={"temperature": 0.7},
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "30 s"},
        ...     codec=ParamsCodec(dict),
        ... )
        >>> judge({"type": "edit", "params": {"temperature": "0.2"}}, question).params
        {'temperature': 0.2}
        >>> judge({"type": "approve", "attempt": 1}, question)
        Refused(problem='The answer is stale: it is for attempt 1. Attempt 2 is under review now: \
look at it and answer again.')
    """
    try:
        entry = unwrap(answer)
        binding = read_binding(entry)
        check_binding(binding, question)
        said = interpret(entry)
        check_echoes(said.echoes, question)
        return _decided(said, binding, question)
    except UnusableAnswerError as problem:
        return Refused(excerpt(str(problem), MAX_PROBLEM))


def _decided(said: Answer, binding: Binding, question: Question) -> Accepted:
    if said.type not in question.allowed:
        raise UnusableAnswerError(
            f"{said.type.capitalize()} is not allowed here. Allowed are "
            f"{', '.join(question.offered)}."
        )
    if said.type == "respond":
        output = _checked_output(said.data, question)
        return Accepted(_decision(said, binding, {"type": "respond", "output": output}))
    if said.type == "reject":
        return Accepted(_decision(said, binding, {"type": "reject", "message": None}))
    if said.type == "edit":
        return _edited(said, binding, question)
    if said.data is not MISSING and changes_of(said.data, question, from_form=said.from_form):
        raise UnusableAnswerError(
            'To approve is to take the params as shown, but the answer changes some: send {"type": '
            '"edit", "params": {…}} to change them.'
        )
    decision = _decision(said, binding, {"type": "approve"})
    return Accepted(decision, question.shown, question.shown_types)


def _edited(said: Answer, binding: Binding, question: Question) -> Accepted:
    changes = changes_of(said.data, question, from_form=said.from_form)
    if not changes:
        same: Decision = {"type": "edit", "params": {}}
        if "approve" in question.allowed:
            same = {"type": "approve"}
        decision = _decision(said, binding, same)
        return Accepted(decision, question.shown, question.shown_types)
    encoded = merged(changes, question)
    params = {name: encoded.view.get(name) for name in changes}
    decision = _decision(said, binding, {"type": "edit", "params": params})
    return Accepted(decision, encoded.view, encoded.types)


def _checked_output(output: Any, question: Question) -> Any:
    """Return the output, or what it says as JSON where it is text and only that is valid."""
    if not fits_checkpoint(output):
        raise UnusableAnswerError("The output holds a whole number beyond 64 bits.")
    issues = _issues(output, question)
    if issues and isinstance(output, str):
        schema = question.output_schema or {}
        if (kinds := kinds_of(schema, schema)) == ANY_KIND or "string" not in kinds:
            try:
                value = read_json(output)
            except NotJsonError:
                value = output
            if value != output and fits_checkpoint(value) and not _issues(value, question):
                return value
    if issues:
        raise UnusableAnswerError(f"The output is not valid:\n{format_issues(issues)}")
    return output


def _issues(output: Any, question: Question) -> list[Issue]:
    return guarded(lambda: question.check_output(output), "The output")


def _decision(said: Answer, binding: Binding, decision: Decision) -> Decision:
    """Complete a decision with the reason and with what the answer says about itself."""
    if said.message is not None:
        decision["message"] = said.message
    if binding.attempt is not None:
        decision["attempt"] = binding.attempt
    if binding.review_id is not None:
        decision["review_id"] = binding.review_id
    if binding.decision_id is not None:
        decision["decision_id"] = binding.decision_id
    if binding.by is not None:
        decision["by"] = binding.by
    return decision
