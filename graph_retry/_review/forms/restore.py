"""Prepare params for a client's form, and read the fields that the form sends back."""

import json
from typing import Any, NamedTuple

from graph_retry._issues import Path, issue, literal
from graph_retry._json import is_array, is_object
from graph_retry._pictures import UnknownPictureError, noted, unnoted
from graph_retry._review.forms.field_kinds import (
    ANY_KIND,
    expectation,
    inner_fields,
    kind_of,
    kinds_of,
)
from graph_retry._review.forms.javascript import LostDigitsError, undamaged
from graph_retry._review.forms.messages import UnknownRoleError, with_types
from graph_retry._review.forms.strict_json import NotJsonError, read_json
from graph_retry._review.question import UnusableAnswerError
from graph_retry._review.redaction import placeholder_in
from graph_retry._schemas import alternatives
from graph_retry._wording import closest, did_you_mean
from graph_retry.records import Issue

MAX_BOX = 4_000
"""Maximum characters of one value in a form."""

MAX_FORM = 20_000
"""Maximum characters of all values in a form, because a payload contains the form three times."""

_LEAST_SHOWN = 100
"""Characters of a value that a form shows even if `MAX_FORM` is used up."""

_LITERALS = {"true": "true", "false": "false", "none": "null"}
_NOT_SHOWN = "characters are not shown: leave the box as it is to keep them, or replace it all]"


def unusable(path: Path, message: str) -> UnusableAnswerError:
    """Return the error that the value of one field cannot be taken; the message names the field."""
    return UnusableAnswerError(message, issues=[issue(path, message, "unreadable")])


class Field(NamedTuple):
    """One field of a typed value: its name such as `user.age`, its schema node and the root schema.

    `from_form` means that the value came through a text box. In an `is_open` field, objects may get
    new fields, because no type declares the fields. `path` leads to the field in the sent value.
    """

    name: str
    node: Any
    root: dict[str, Any]
    from_form: bool = False
    is_open: bool = False
    path: Path = ()


def form_args(shown: dict[str, Any]) -> dict[str, Any]:
    """Return params in the form that clients' forms show.

    A top-level null becomes the text `null`, because Agent Inbox crashes on null. A long text is
    cut, and ends in a note, because its box would fill many screens. A note replaces each picture.

    Example:
        >>> form_args({"prompt": "x", "seed": None})
        {'prompt': 'x', 'seed': 'null'}
    """
    args: dict[str, Any] = {}
    left = MAX_FORM
    for name, value in noted(shown).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        args[name] = "null" if value is None else _bounded(value, text, max(left, _LEAST_SHOWN))
        left -= min(len(text), MAX_BOX)
    return args


def is_untouched(name: str, text: Any, shown: dict[str, Any]) -> bool:
    """Return whether a form sends back an unchanged box that showed only a part of its value.

    Raises:
        UnusableAnswerError: If the shown part was changed, because the rest of it is missing.
    """
    if not isinstance(text, str) or _NOT_SHOWN not in text:
        return False
    if text.replace("\r\n", "\n") == str(form_args(shown).get(name)).replace("\r\n", "\n"):
        return True
    raise unusable(
        (name,),
        f"`{name}` was shown in part: replace the whole text, the note at its end included, or "
        f'send {{"type": "edit", "params": {{"{name}": …}}}}.',
    )


def restored(value: Any, shown: Any, field: Field) -> Any:
    """Return the field's new value, with the original digits of numbers that were not changed.

    - A text for a field that takes no text is read as JSON.
    - A text for a field that takes text stays as typed. `null` clears a field that may be null.
    - An object is merged onto the shown object, key by key and at every depth. It replaces the
      shown object if it follows another branch of a union, or if it comes from a form and its
      schema names no fields, because forms send whole fields.
    - A list replaces the shown list.

    Raises:
        UnusableAnswerError: If the text is not a value of the field, or an object has an unknown
            field. It lists all such fields of an object.

    Example:
        >>> root = {"properties": {"n": {"type": "number"}}}
        >>> restored("0.2", 0.7, Field("n", root["properties"]["n"], root))
        0.2
    """
    if is_object(value) and is_object(shown) and not _changes_branch(value, shown, field):
        named, others = inner_fields(field.node, field.root)
        if named or not field.from_form:
            merged, issues = dict(shown), list[Issue]()
            for key, item in value.items():
                below = field._replace(
                    name=f"{field.name}.{key}",
                    node=named.get(key, others),
                    path=(*field.path, key),
                )
                try:
                    _check_known(key, (*shown, *named), value, below, is_typed=bool(named))
                    merged[key] = restored(item, shown.get(key), below)
                except UnusableAnswerError as error:
                    issues += error.issues
            if issues:
                problem = "\n".join(one["message"] for one in issues)
                raise UnusableAnswerError(problem, issues=issues)
            return merged
    try:
        value = unnoted(value, shown) if field.from_form else value
        if isinstance(value, str) and value != shown:
            value = _read(value, shown, field)
        if is_array(value):
            value = with_types(value, shown, field.node, field.root)
        return undamaged(value, shown)
    except LostDigitsError as error:
        raise unusable(field.path, f"`{field.name}`: {error}. Send all digits.") from None
    except (UnknownPictureError, UnknownRoleError) as error:
        raise unusable(field.path, f"`{field.name}`: {error}.") from None


def check_hidden(path: Path, name: str, value: Any, shown: Any, original: Any) -> None:
    """Refuse a placeholder of the redactor such as `***`, because the model would get it."""
    if word := placeholder_in(value, shown, original):
        what = f"`{name}` has {literal(word, 80)}, and it is not known what stands behind it"
        raise unusable(path, f"{what}. Leave the text as it is shown, or write all of it.")


def _changes_branch(value: dict[str, Any], shown: dict[str, Any], field: Field) -> bool:
    """Return whether an object follows another branch of a union than the shown object.

    A field with one allowed value in each branch, such as a `Literal`, tells the branches apart.
    """
    branches = alternatives(field.node, field.root)
    for branch in branches if len(branches) > 1 else []:
        named: dict[str, Any] = branch.get("properties") or {}
        tags = [name for name, node in named.items() if is_object(node) and "const" in node]
        if any(name in value and value[name] != shown.get(name, value[name]) for name in tags):
            return True
    return False


def _check_known(
    key: str, known: tuple[str, ...], sent: dict[str, Any], below: Field, *, is_typed: bool
) -> None:
    """Refuse an unknown field of an object, because most types would ignore it silently.

    An object that takes any field may get a new one, unless its name looks like a misspelled field.
    """
    if key in known:
        return
    near = closest(key, known)
    is_open = below.is_open or below.node or not is_typed
    if not is_open or (near is not None and near not in sent):
        hint = did_you_mean(key, known)
        raise unusable(below.path, f"There is no field {literal(below.name, 80)}.{hint}")


def _bounded(value: Any, text: str, most: int) -> Any:
    most = min(most, MAX_BOX)
    if len(text) <= most:
        return value
    return f"{text[:most]}… [{len(text) - most:,} more {_NOT_SHOWN}"


def _read(text: str, shown: Any, field: Field) -> Any:
    """Read a text typed for a field. A form's field without a type has that of its shown value."""
    kinds = kinds_of(field.node, field.root)
    if kinds == ANY_KIND and field.from_form and shown is not None:
        kinds = frozenset({kind_of(shown)})
    readable, source, why = kinds, _LITERALS.get(text.strip().casefold(), text), ""
    if "string" in kinds:
        stays = isinstance(shown, str) and kinds == ANY_KIND
        readable = frozenset[str]() if stays else kinds & {kind_of(shown), "null"} - {"string"}
        source = text
    try:
        parsed = read_json(source)
        if isinstance(parsed, str) and "string" not in kinds:
            parsed = read_json(parsed)
        if kind_of(parsed) in readable:
            return parsed
    except NotJsonError as error:
        why = f" ({error})" if kinds & {"array", "object"} else ""
    if "string" in kinds:
        return text
    what = f"expects {expectation(kinds)}, not {literal(text, 80)}{why}."
    raise unusable(field.path, f"`{field.name}` {what}")
