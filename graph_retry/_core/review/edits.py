"""Apply a person's changes to the params (an edit), or to the model's output (a response)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from jsonpointer import EndOfList, JsonPointerException, resolve_pointer

from graph_retry._core.ground.issues import issue, json_problem, literal, top_of
from graph_retry._core.ground.json import (
    ABSENT,
    NotJsonError,
    is_array,
    is_object,
    pointer,
    pointer_parts,
    read_json,
    with_texts,
)
from graph_retry._core.ground.redact import property_names, redacted
from graph_retry._core.ground.wording import counted, did_you_mean
from graph_retry._core.output.misplaced import moved, moves
from graph_retry._core.output.validator import format_issues
from graph_retry._core.params.codec import ParamsInvalid
from graph_retry._core.params.patch import Encoded, apply_patch
from graph_retry._core.review.answers import BINDING
from graph_retry._core.review.forms.originals import (
    LostDigitsError,
    UnreadableError,
    hidden_in,
    is_untouched,
    names_behind,
    put_back,
)
from graph_retry._core.review.forms.restore import Field, merged, restored
from graph_retry._core.review.review_record import Question, Reading, Refused
from graph_retry.lossless._ground import error_text, identical
from graph_retry.records import Issue


def changes_of(given: Reading, question: Question) -> dict[str, Any]:
    """Return the fields that an edit changes, with their new values.

    A reviewer may see a redacted value, such as `***`. If the edit sends this value back, the
    original is kept.

    Raises:
        Refused: If a field is unknown, locked or unreadable. The text names these fields.
    """
    codec, original, issues = question.codec, question.shown, list[Issue]()
    is_private = question.redact is not None
    shown = redacted(original, question.redact, codec.names) if is_private else original
    schema, names = codec.schema(original), names_behind(shown, original)
    params = Field("", schema, schema, shown, original, given.from_form, codec.fields is None)
    node = {**schema, "additionalProperties": codec.fields is None}
    sent: dict[str, Any] = {}
    for label, value in _fields(given.decision.get("params"), question).items():
        try:
            if not (given.from_form and is_untouched(label, value, shown)):
                sent[label] = value
        except UnreadableError as error:
            issues.append(issue((label,), f"`{label}` {error}.", "unreadable"))
    new = merged(sent, params, [node], issues)
    changes: dict[str, Any] = {}
    for label in sent:
        name = names.get(label, label)
        if name not in new or (name in original and identical(new[name], original[name])):
            continue
        changes[name] = new[name]
        if name in question.locked:
            problem = f"`{name}` is locked: leave it unchanged."
            issues.append(issue((label,), problem, "unreadable"))
        is_new = name not in original and name not in (codec.fields or ())
        if name in BINDING and is_new and name not in given.decision:
            beside = f'{{**edit(…), "{name}": …}}'
            problem = (
                f"`{name}` is a key of the decision, and not a field of the params: write it "
                f"beside `params`, as in {beside}. To add such a field, send both."
            )
            issues.append(issue((label,), problem, "unreadable"))
        if is_private and (hidden := hidden_in(new[name], shown, original)):
            issues.append(issue((label,), f"`{name}` {hidden}", "unreadable"))
    if issues:
        problem = "\n".join(one["message"] for one in issues)
        raise _refusal(given, problem, issues, changes, question)
    return changes


def _refusal(
    given: Reading, problem: str, issues: list[Issue], changes: dict[str, Any], question: Question
) -> Refused:
    """Return the refusal of an edit. It lists the `issues`, and the errors of the other changes.

    If a form sent the edit, and the other changes are valid, the next form shows these changes.
    """
    wrong = set(map(top_of, issues))
    others = {name: new for name, new in changes.items() if name not in wrong}
    try:
        question.codec.load({**question.shown, **others}, question.shown_types)
    except (TypeError, ValueError) as error:
        found: list[Issue] = getattr(error, "issues", [])
        if invalid := [one for one in found if top_of(one) in others]:
            problem = f"{problem}\nOther changes are not valid:\n{format_issues(invalid)}"
        return Refused(problem, issues=[*issues, *invalid])
    return Refused(problem, others if given.from_form else {}, issues)


def edited(given: Reading, changes: dict[str, Any], question: Question) -> Encoded:
    """Return the params after the changes, as JSON and with their Python types.

    Raises:
        Refused: If the declared type of the params refuses the changed params. The text lists the
            errors by field.
    """
    try:
        return question.codec.load({**question.shown, **changes}, question.shown_types)
    except ParamsInvalid as error:
        whose = "edited params" if changes else "params"
        problem = f"The {whose} are not valid:\n{format_issues(error.issues)}"
        raise _refusal(given, problem, error.issues, changes, question) from None
    except (TypeError, ValueError) as error:
        raise Refused(f"The params cannot be saved: {error_text(error)}.") from None


def _fields(data: Any, question: Question) -> dict[str, Any]:
    if data is None:
        return {}
    if question.codec.form == "bare":
        return _bare_field(data, question.shown["value"])
    if isinstance(data, str):
        with suppress(NotJsonError):
            data = read_json(data)
    if not is_object(data):
        problem = f"`params` must be an object of the fields to change, not {literal(data, 80)}."
        raise Refused(problem)
    return data


def _bare_field(data: Any, shown: Any) -> dict[str, Any]:
    """Return the new value of params that are one plain value, as `{"value": …}`.

    An answer may send this value alone, or under the key `value`.
    """
    if is_object(data) and data.keys() != {"value"} and not is_object(shown):
        how = "these params are a single value, so send `edit(value=…)`"
        raise Refused(f"There is no field {literal(next(iter(data), ''), 80)}: {how}.")
    fields = data if is_object(data) and data.keys() == {"value"} else {"value": data}
    if isinstance(shown, str) and not isinstance(fields["value"], str):
        problem = (
            f"`value` expects a text, like the current value, not {literal(fields['value'], 80)}."
        )
        raise Refused(problem, issues=[issue(("value",), problem, "unreadable")])
    return fields


_FORBIDDEN = ("extra_forbidden", "additionalProperties")
"""The issue codes for keys that a schema forbids, in pydantic and in JSON Schema."""


async def checked_change(parts: dict[str, Any], question: Question) -> tuple[Any, dict[str, Any]]:
    """Apply changes to the model's output, and validate it. Return the output and the changes.

    Keys that the schema forbids are removed as well. The returned changes list them under `drop`.

    Raises:
        Refused: If a change does not fit the output, or if the changed output is not valid.
    """
    changed = changed_output(parts, question)
    while True:
        try:
            return await checked_output(changed, question), parts
        except Refused as refused:
            wrong = [one["path"] for one in refused.issues if one["code"] in _FORBIDDEN]
            forbidden = [path for path in wrong if _is_in(changed, path)]
            if not forbidden:
                raise
        changed = _without(forbidden, changed, question)
        parts = {**parts, "drop": [*parts.get("drop", ()), *forbidden]}


def _without(paths: Any, value: Any, _question: Question) -> Any:
    """Return a copy of a JSON value without the keys and list items at these JSON Pointers."""
    if not is_array(paths) or not all(isinstance(path, str) for path in paths):
        raise Refused('`drop` takes JSON Pointers of keys to remove, such as ["/lines/0/note"].')
    for path in paths:
        if not _is_in(value, path):
            known = tuple(pointer((key,)) for key in value) if is_object(value) else ()
            near = did_you_mean(path, known)
            raise Refused(
                f"{literal(path, 80)} is not a place in the output: give a path such as "
                f"/lines/0.{near}"
            )
    # Later items of a list go first, so that the places of earlier items stay.
    places = sorted(dict.fromkeys(paths), key=_place, reverse=True)
    return apply_patch(value, [{"op": "remove", "path": path} for path in places])


def _with_moves(move: Any, output: Any, question: Question) -> Any:
    schema = question.schema_of_output or {}
    if move is not True:
        raise Refused(f"`move` must be true, not {literal(move, 80)}.")
    if not moves(output, schema):
        raise Refused(
            "`move` has nothing to do, because no key of this output is in a wrong object: "
            "leave it out."
        )
    return moved(output, schema)


def _is_in(value: Any, path: str) -> bool:
    with suppress(JsonPointerException):
        found = resolve_pointer(value, path, ABSENT)
        return path != "" and found is not ABSENT and not isinstance(found, EndOfList)
    return False


def _place(path: str) -> list[tuple[int, str]]:
    return [(len(part), part) for part in pointer_parts(path)]


def changed_output(parts: Mapping[str, Any], question: Question) -> Any:
    """Return the model's output after all changes that a `respond` decision asks for.

    Raises:
        Refused: If the model's output could not be read or is redacted, or if a change does not fit
            the output.
    """
    if question.read is None:
        why = "nothing could be read" if question.redact is None else "what was read is redacted"
        problem = f"No output can be changed in part here, because {why}."
        raise Refused(f"{problem} Send the whole value as `output`.")
    output = question.part_to_change(question.read["value"])
    for part, change in CHANGES.items():
        if part in parts:
            output = change(parts[part], output, question)
    return output


def _with_fields(fields: Any, original: Any, question: Question) -> Any:
    if not (is_object(fields) and is_object(original)):
        wrong = fields if is_object(original) else original
        what = "`changes` works only on objects"
        raise Refused(
            f"{what}, but it found {literal(wrong, 80)}. Send the whole value as `output`."
        )
    schema, issues = question.schema_of_output or {}, list[Issue]()
    shown = redacted(original, question.redact, property_names(schema))
    new = restored(fields, Field("output", schema, schema, shown, original), issues)
    if issues:
        raise Refused("\n".join(one["message"] for one in issues), issues=issues)
    return new


def _with_words(words: Any, output: Any, _question: Question) -> Any:
    """Replace words in all texts of an output. The replacements do not affect each other."""
    if not is_object(words) or not all(isinstance(new, str) and old for old, new in words.items()):
        raise Refused('`replace` is an object of old and new words: {"old": "new"}.')
    if not words:
        return output
    found, either = Counter[str](), "|".join(map(re.escape, words))
    replaced: list[str] = []

    def put(place: re.Match[str]) -> str:
        replaced.append(place[0])
        return str(words[place[0]])

    def change(text: str) -> str:
        # A lookahead consumes no characters, so it also finds places that overlap.
        found.update({old: len(re.findall(f"(?={re.escape(old)})", text)) for old in words})
        return re.sub(either, put, text)

    changed = with_texts(output, change)
    for old in words:
        if found[old] != 1:
            there = f"{counted(found[old], 'time')}" if found[old] else ""
            there = f"is in the output {there}" if there else "is not in the output"
            how = "Give more of the text around it." if found[old] else "Copy it from there."
            raise Refused(f"{literal(old, 80)} {there}, but must occur once. {how}")
        if old not in replaced:
            how = "Replace the whole passage by one pair of old and new words."
            raise Refused(f"{literal(old, 80)} overlaps other words to replace. {how}")
    return changed


CHANGES: dict[str, Callable[[Any, Any, Question], Any]] = {
    "drop": _without,
    "move": _with_moves,
    "changes": _with_fields,
    "replace": _with_words,
}
"""The keys of `respond` that change the model's output, in the order in which they are applied.

Each function gets the value of its key, the output and the question, and returns the new output.
"""


async def checked_output(output: Any, question: Question) -> Any:
    """Validate an output that a person supplied, and return it as JSON for the graph state.

    A text that is not a valid output is parsed as JSON and validated again. The reviewer may have
    seen a redacted text or a rounded number. If the output repeats it, the original value is used.

    Raises:
        Refused: If the output is not valid, or if the graph state cannot hold it.
    """
    if question.read is not None:
        original = question.read["value"]
        shown = redacted(original, question.redact, property_names(question.schema_of_output))
        try:
            output = put_back(output, shown, original)
        except LostDigitsError as error:
            raise Refused(f"`output`: {error}.") from None
        if hidden := hidden_in(output, shown, original):
            problem = f"`output` {hidden}"
            raise Refused(problem, issues=[issue("", problem, "unreadable")])
    checked = await question.check_output(output)
    if not checked.ok and isinstance(output, str):
        try:
            value = read_json(output)
        except NotJsonError as error:
            why = (
                f"The output was read as a text, because it is not valid JSON: {error}. Correct "
                "the JSON, or give the value itself."
            )
            checked.issues.append(issue("", why, "no_json"))
        else:
            read = await question.check_output(value)
            # The errors inside an object or list are more helpful than an error about the text.
            checked = read if read.ok or is_object(value) or is_array(value) else checked
    if not checked.ok:
        problem = f"The output is not valid:\n{format_issues(checked.issues)}"
        raise Refused(problem, issues=checked.issues)
    if wrong := json_problem(checked.jsonable):
        problem = f"The output cannot be saved:\n{format_issues([wrong])}"
        raise Refused(problem, issues=[wrong])
    return checked.jsonable
