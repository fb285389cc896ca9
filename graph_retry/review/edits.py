"""Merge the fields somebody sent onto the params that were shown, and hold them to the type."""

from contextlib import suppress
from typing import Any

from graph_retry.forms.field_kinds import inner_nodes
from graph_retry.forms.form_view import form_args
from graph_retry.forms.javascript import identical
from graph_retry.forms.restore import Field, UnreadableFieldError, restored
from graph_retry.forms.strict_json import NotJsonError, read_json
from graph_retry.params.codec import Encoded
from graph_retry.params.invalid import ParamsInvalid
from graph_retry.params.jsonlike import is_object
from graph_retry.review.guarded import guarded
from graph_retry.review.question import Question, UnusableAnswerError
from graph_retry.review.unwrap import did_you_mean
from graph_retry.validate.issues import format_issues, literal

_MAX_PROBLEMS = 10


def changes_of(data: Any, question: Question, *, from_form: bool) -> dict[str, Any]:
    """Return the fields that really change, restored; those that repeat what was shown are not.

    Raises:
        UnusableAnswerError: If a field is unknown, locked or unreadable; it names all of them.
    """
    fields = _fields(data, question)
    schema = question.codec.schema(question.shown)
    nodes = inner_nodes(schema, schema)
    in_form = form_args(question.shown)
    changes: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in fields.items():
        field = Field(name, nodes.of(name), schema, from_form)
        try:
            _check_known(name, question)
            shown = question.shown.get(name)
            new = restored(value, shown, in_form.get(name), field)
            if name not in question.shown or not identical(new, shown):
                _check_unlocked(name, question)
                changes[name] = new
        except (UnreadableFieldError, UnusableAnswerError) as problem:
            problems.append(str(problem))
    if problems:
        more = len(problems) - _MAX_PROBLEMS
        tail = [f"… and {more} more."] if more > 0 else []
        raise UnusableAnswerError("\n".join([*problems[:_MAX_PROBLEMS], *tail]))
    return changes


def merged(changes: dict[str, Any], question: Question) -> Encoded:
    """Return the params with the changes in place, as the params' type writes them.

    Raises:
        UnusableAnswerError: If the type refuses them; it lists what is wrong by field.
    """
    value = {**question.shown, **changes}
    try:
        return guarded(lambda: question.codec.load(value, question.shown_types), "The params")
    except ParamsInvalid as error:
        raise UnusableAnswerError(
            f"The edited params are not valid:\n{format_issues(error.issues)}"
        ) from None


def _fields(data: Any, question: Question) -> dict[str, Any]:
    if question.codec.is_empty:
        raise UnusableAnswerError(
            "This call has no params, so there is nothing to edit. Allowed are "
            f"{', '.join(question.offered)}."
        )
    if question.codec.is_bare:
        wrapped = is_object(data) and data.keys() == {"value"}
        return data if wrapped else {"value": data}
    if isinstance(data, str):
        with suppress(NotJsonError):
            data = read_json(data)
    if not is_object(data):
        raise UnusableAnswerError(
            f"`params` must be an object of the fields to change, not {literal(data, 80)}."
        )
    return data


def _check_known(name: str, question: Question) -> None:
    known = question.codec.fields
    if known is None or name in known:
        return
    names = ", ".join(f"`{each}`" for each in known)
    raise UnusableAnswerError(
        f"There is no field {literal(name, 80)}.{did_you_mean(name, known)} The fields are {names}."
    )


def _check_unlocked(name: str, question: Question) -> None:
    if name in question.locked:
        raise UnusableAnswerError(f"`{name}` is locked: leave it as it is shown.")
