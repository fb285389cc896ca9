"""Turn one edited field back into what the person meant, after forms and browsers handled it."""

from dataclasses import dataclass
from typing import Any

from graph_retry.forms.field_kinds import ANY_KIND, expectation, inner_nodes, kind_of, kinds_of
from graph_retry.forms.form_view import CUT_MARK
from graph_retry.forms.javascript import LostDigitsError, identical, undamaged
from graph_retry.forms.strict_json import NotJsonError, read_json
from graph_retry.params.jsonlike import is_object
from graph_retry.validate.issues import literal

_LITERALS = {"true": True, "false": False, "null": None, "none": None}


class UnreadableFieldError(ValueError):
    """Text that is no value of the field it was typed over; the text names the field."""


@dataclass(frozen=True)
class Field:
    """One field of a typed value: its path in words, its schema node, and the schema around it."""

    name: str
    node: Any
    root: dict[str, Any]
    from_form: bool = False

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of JSON value the field takes."""
        return kinds_of(self.node, self.root)


def restored(value: Any, shown: Any, in_form: Any, field: Field) -> Any:
    """Return the field's new value: `shown` itself where `value` merely repeats it.

    `in_form` is how a form rendered `shown`. Text over a field that takes no text is read as JSON
    and replaces the field; text over one that does stays as typed. An object is merged into the
    one that was shown, key by key and at every depth; only a free-form object that comes from a
    form replaces it, because forms send whole fields. Lists are replaced.

    Raises:
        UnreadableFieldError: If the text cannot be read as what the field takes.

    Example:
        >>> root = {"properties": {"n": {"type": "number"}}}
        >>> restored("0.2", 0.7, 0.7, Field("n", root["properties"]["n"], root))
        0.2
    """
    if identical(value, in_form):
        return shown
    if not identical(in_form, shown) and isinstance(value, str) and CUT_MARK in value:
        raise UnreadableFieldError(
            f"`{field.name}` was too long for the form and was shown shortened: replace all of "
            'it, or send the whole value as {"type": "edit", "params": {…}}.'
        )
    try:
        return _restored(value, shown, field)
    except LostDigitsError as error:
        raise UnreadableFieldError(
            f"`{field.name}`: {error}. Answer in JSON, with all digits."
        ) from None


def _restored(value: Any, shown: Any, field: Field) -> Any:
    if isinstance(value, str) and value != shown:
        return undamaged(_read(value, shown, field), shown)
    if is_object(value) and is_object(shown):
        return _merged(value, shown, field)
    return undamaged(value, shown)


def _merged(value: dict[str, Any], shown: dict[str, Any], field: Field) -> dict[str, Any]:
    """Merge a partial object; a form sends a free-form one whole, with keys taken out of it."""
    inner = inner_nodes(field.node, field.root)
    if field.from_form and not inner.fixed:
        whole: dict[str, Any] = undamaged(value, shown)
        return whole
    merged = dict(shown)
    for key, each in value.items():
        below = Field(f"{field.name}.{key}", inner.of(key), field.root, field.from_form)
        merged[key] = _restored(each, shown.get(key), below)
    return merged


def _read(text: str, shown: Any, field: Field) -> Any:
    """Read text typed over a field."""
    kinds = field.kinds
    if "string" not in kinds:
        return _parsed(text, field, kinds)
    if isinstance(shown, str) or shown is None:
        nullable = kinds != ANY_KIND and "null" in kinds
        return None if field.from_form and nullable and text.strip() == "null" else text
    try:
        found = read_json(text)
    except NotJsonError:
        found = text
    if found is None or kind_of(found) == kind_of(shown):
        return found
    if kinds != ANY_KIND or not field.from_form:
        return text
    if isinstance(found, str) and found != text:  # quoted: the person means text
        return found
    raise UnreadableFieldError(
        f"`{field.name}` shows {literal(shown, 80)}, so {literal(text, 80)} must be "
        f"{expectation(frozenset({kind_of(shown)}))}; for text, put it in double quotes."
    )


def _parsed(text: str, field: Field, kinds: frozenset[str]) -> Any:
    word = text.strip().casefold()
    if word in _LITERALS and kind_of(_LITERALS[word]) in kinds:
        return _LITERALS[word]
    try:
        found = read_json(text)
        found = read_json(found) if isinstance(found, str) else found
    except NotJsonError as error:
        why = f" ({error})" if "array" in kinds or "object" in kinds else ""
    else:
        if kind_of(found) in kinds:
            return found
        why = ""
    raise UnreadableFieldError(
        f"`{field.name}` expects {expectation(kinds)}, not {literal(text, 80)}{why}."
    )
