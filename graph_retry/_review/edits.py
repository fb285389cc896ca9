"""Merge the fields of an edit onto the shown params, or those of a response onto the output.

The result is validated. A returned form also needs repair: see `forms/`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from graph_retry._issues import SHOWN_ISSUES, format_issues, issue, json_problem, literal, top_of
from graph_retry._json import is_array, is_object, with_texts
from graph_retry._params.codec import ParamsInvalid
from graph_retry._params.patch import Encoded
from graph_retry._redact import property_names, redacted
from graph_retry._review.forms.field_kinds import inner_fields
from graph_retry._review.forms.javascript import identical
from graph_retry._review.forms.restore import Field, check_hidden, is_untouched, restored, unusable
from graph_retry._review.forms.strict_json import NotJsonError, read_json
from graph_retry._review.question import Question, Said, UnusableAnswerError
from graph_retry._review.redaction import displayed, names_behind, unredacted
from graph_retry._wording import counted, did_you_mean, near_miss
from graph_retry.records import Issue


def changes_of(said: Said, question: Question) -> dict[str, Any]:
    """Return the fields whose values differ from the shown ones, with their original values back.

    Raises:
        UnusableAnswerError: If a field is unknown, locked or unreadable; it names all of them.
    """
    schema, original = question.codec.schema(question.shown), question.shown
    displayed_params = displayed(question).shown
    names = names_behind(displayed_params, original)
    shown = {names[name]: value for name, value in displayed_params.items()}
    nodes, others = inner_fields(schema, schema)
    is_open = question.codec.fields is None
    changes: dict[str, Any] = {}
    issues: list[Issue] = []
    sent = _fields(said.data, question)
    for label, value in sent.items():
        name = names.get(label, label)
        if len(issues) >= SHOWN_ISSUES:
            break
        try:
            _check_known(label, name, question, sent)
            if said.from_form and is_untouched(name, value, shown):
                continue
            field = Field(name, nodes.get(name, others), schema, said.from_form, is_open, (label,))
            read = restored(value, shown.get(name), field)
            new = unredacted(read, shown.get(name), original.get(name))
            check_hidden((label,), name, new, displayed_params, original)
            is_changed = name not in original or not identical(new, original[name])
            if is_changed and name in question.locked:
                raise unusable((label,), f"`{name}` is locked: leave it as it is shown.")
            changes |= {name: new} if is_changed else {}
        except UnusableAnswerError as error:
            issues += error.issues
    if issues:
        raise _refusal(said, "\n".join(one["message"] for one in issues), issues, changes, question)
    return changes


def _refusal(
    said: Said, problem: str, issues: list[Issue], changes: dict[str, Any], question: Question
) -> UnusableAnswerError:
    """Refuse an edit for these issues and those of the other changes, which a form shows again."""
    wrong = set(map(top_of, issues))
    others = {name: new for name, new in changes.items() if name not in wrong}
    try:
        question.codec.load({**question.shown, **others}, question.shown_types)
    except (TypeError, ValueError) as error:
        found: list[Issue] = getattr(error, "issues", [])
        if invalid := [one for one in found if top_of(one) in others]:
            problem = f"{problem}\nOther changes are not valid:\n{format_issues(invalid)}"
        return UnusableAnswerError(problem, issues=[*issues, *invalid])
    return UnusableAnswerError(problem, others if said.from_form else {}, issues)


def merged(said: Said, changes: dict[str, Any], question: Question) -> Encoded:
    """Return the params with the changes, as the params' type encodes them.

    Raises:
        UnusableAnswerError: If the params' type refuses them. The text lists the errors by field.
    """
    try:
        return question.codec.load({**question.shown, **changes}, question.shown_types)
    except ParamsInvalid as error:
        whose = "edited params" if changes else "params"
        problem = f"The {whose} are not valid:\n{format_issues(error.issues)}"
        raise _refusal(said, problem, error.issues, changes, question) from None
    except (TypeError, ValueError) as error:
        raise UnusableAnswerError(f"The params cannot be kept: {error}.") from None


def _fields(data: Any, question: Question) -> dict[str, Any]:
    if data is None:
        return {}
    if question.codec.is_bare:
        return _bare_field(data, question.shown["value"])
    if isinstance(data, str):
        with suppress(NotJsonError):
            data = read_json(data)
    if not is_object(data):
        problem = f"`params` must be an object of the fields to change, not {literal(data, 80)}."
        raise UnusableAnswerError(problem)
    return data


def _bare_field(data: Any, shown: Any) -> dict[str, Any]:
    """Read a new value for params that are one bare value, either alone or under `value`."""
    if is_object(data) and data.keys() != {"value"} and not is_object(shown):
        how = "these params are one value, so send `edit(value=…)`"
        raise UnusableAnswerError(f"There is no field {literal(next(iter(data), ''), 80)}: {how}.")
    fields = data if is_object(data) and data.keys() == {"value"} else {"value": data}
    if isinstance(shown, str) and not isinstance(fields["value"], str):
        came = literal(fields["value"], 80)
        raise unusable(("value",), f"`value` expects text, as it is now, not {came}.")
    return fields


def _check_known(label: str, name: str, question: Question, sent: Collection[str]) -> None:
    known, shown = question.codec.fields, question.shown
    field, dot, inner = name.partition(".")
    if name not in shown and dot and is_object(shown.get(field)):
        path = literal({field: {inner.rpartition(".")[2]: "…"}}, 80)
        how = f"to change a part of `{field}`, send it as an object such as {path}"
        raise unusable((label,), f"There is no field {literal(name, 80)}: {how}.")
    if known is not None and name not in known:
        what = f"There is no field {literal(name, 80)}.{did_you_mean(name, known)}"
        names = ", ".join(f"`{field}`" for field in known)
        raise unusable((label,), f"{what} The fields are {names}.")
    if near := None if known is not None else near_miss(name, shown, sent):
        what = f"There is no field {literal(name, 80)}. Did you mean `{near}`?"
        raise unusable((label,), f"{what} To add a field of that name, send `{near}` with it.")


def changed_output(parts: Mapping[str, Any], question: Question) -> Any:
    """Return the output that was read, with some fields changed and some words replaced.

    Raises:
        UnusableAnswerError: If no output was read, or the place of a change is not certain.
    """
    if question.read is None:
        why = "nothing could be read" if question.redact is None else "what was read is redacted"
        problem = f"There is no output here that could be changed in part: {why}."
        raise UnusableAnswerError(f"{problem} Send the whole as `output`.")
    output, words = question.read["value"], parts.get("replace", {})
    if "changes" in parts:
        output = _with_fields(parts["changes"], output, question)
    if not is_object(words) or not all(isinstance(new, str) and old for old, new in words.items()):
        raise UnusableAnswerError('`replace` takes words by those before: {"old": "new"}.')
    for old, new in words.items():
        output = _with_words(output, old, new)
    return output


def _with_fields(fields: Any, original: Any, question: Question) -> Any:
    if not (is_object(fields) and is_object(original)):
        wrong = fields if is_object(original) else original
        what = "`changes` names fields of an output that is an object"
        raise UnusableAnswerError(f"{what}; here it met {literal(wrong, 80)}.")
    schema = question.schema_of_output or {}
    shown = redacted(original, question.redact, property_names(schema))
    field = Field("output", schema, schema)
    return unredacted(restored(fields, shown, field), shown, original)


def _with_words(output: Any, old: str, new: str) -> Any:
    found: list[int] = []

    def change(text: str) -> str:
        found.append(text.count(old))
        return text.replace(old, new)

    changed = with_texts(output, change)
    count = sum(found)
    if count != 1:
        there = f"is in the output {counted(count, 'time')}" if count else "is not in the output"
        how = "Give more of the text around it." if count else "Copy it from there."
        raise UnusableAnswerError(f"{literal(old, 80)} {there}: it must be there once. {how}")
    return changed


async def checked_output(output: Any, question: Question) -> Any:
    """Validate a person's output and return its JSON for graph state.

    A text that is not valid itself is parsed as JSON. Redacted values become the originals again.

    Raises:
        UnusableAnswerError: If the output is not valid, or graph state cannot hold it.
    """
    if question.redact is not None and question.read is not None:
        original = question.read["value"]
        names = property_names(question.schema_of_output)
        shown = redacted(original, question.redact, names)
        output = unredacted(output, shown, original)
        check_hidden((), "output", output, shown, original)
    checked = await question.check_output(output)
    if not checked.ok and isinstance(output, str):
        try:
            value = read_json(output)
        except NotJsonError as error:
            why = f"As text it was taken because it is no JSON: {error}."
            checked.issues.append(issue("", why, "no_json"))
        else:
            read = await question.check_output(value)
            # The errors inside an object or list tell more than an error about the text.
            checked = read if read.ok or is_object(value) or is_array(value) else checked
    if not checked.ok:
        problem = f"The output is not valid:\n{format_issues(checked.issues)}"
        raise UnusableAnswerError(problem, issues=checked.issues)
    if wrong := json_problem(checked.jsonable):
        problem = f"The output cannot be kept:\n{format_issues([wrong])}"
        raise UnusableAnswerError(problem, issues=[wrong])
    return checked.jsonable
