"""Judge an answer: the decision it makes about the open question, or why it makes none."""

from typing import Any, cast

from graph_retry.forms.excerpt import excerpt
from graph_retry.forms.field_kinds import ANY_KIND, kinds_of
from graph_retry.forms.strict_json import NotJsonError, read_json
from graph_retry.params.typed_json import write
from graph_retry.review.binding import bound, check_echoes
from graph_retry.review.decision import Decision
from graph_retry.review.dialects import MISSING, Answer, interpret
from graph_retry.review.edits import changes_of, merged
from graph_retry.review.guarded import guarded
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
        >>> judge({"type": "edit", "params": {"temperature": "warm"}}, question)
        Refused(problem='`temperature` expects a number, not "warm".')
    """
    try:
        entry = unwrap(answer)
        binding = bound(entry, question)
        said = interpret(entry)
        check_echoes(said.echoes, question)
        verdict = _decided(said, question)
    except UnusableAnswerError as problem:
        return Refused(excerpt(str(problem), MAX_PROBLEM))
    reason = {"message": said.message} if said.message is not None else {}
    decision = cast("Decision", {**verdict.decision, **reason, **binding})
    return Accepted(decision, verdict.params, verdict.types)


def _decided(said: Answer, question: Question) -> Accepted:
    if said.type not in question.allowed:
        raise UnusableAnswerError(
            f"{said.type.capitalize()} is not allowed here. Allowed are "
            f"{', '.join(question.offered)}."
        )
    if said.type == "reject":
        return Accepted({"type": "reject", "message": None})
    if said.type == "respond":
        return Accepted({"type": "respond", "output": _checked_output(said.data, question)})
    changes: dict[str, Any] = {}
    if said.data is not MISSING:
        changes = changes_of(said.data, question, from_form=said.from_form)
    if said.type == "approve" and changes:
        raise UnusableAnswerError(
            'To approve is to take the params as shown, but the answer changes some: send {"type": '
            '"edit", "params": {…}} to change them.'
        )
    if changes:
        encoded = merged(changes, question)
        params = {name: encoded.view.get(name) for name in changes}
        return Accepted({"type": "edit", "params": params}, encoded.view, encoded.types)
    same: Decision = {"type": "edit", "params": {}}
    if "approve" in question.allowed:
        same = {"type": "approve"}
    return Accepted(same, question.shown, question.shown_types)


def _checked_output(output: Any, question: Question) -> Any:
    """Return the output, or what it says as JSON where it is text and only that is valid."""
    issues = guarded(lambda: question.check_output(output), "The output")
    schema = question.output_schema or {}
    kinds = kinds_of(schema, schema)
    if issues and isinstance(output, str) and (kinds == ANY_KIND or "string" not in kinds):
        try:
            value = read_json(output)
        except NotJsonError:
            value = output
        if not guarded(lambda: question.check_output(value), "The output"):
            output, issues = value, []
    if issues:
        raise UnusableAnswerError(f"The output is not valid:\n{format_issues(issues)}")
    if write(output)[1]:
        raise UnusableAnswerError("The output holds a whole number beyond 64 bits.")
    return output
