"""Show fields to a form, and turn what comes back into what the person meant."""

from typing import Any, NamedTuple

from graph_retry._issues import literal
from graph_retry._json import is_object
from graph_retry._review.forms.field_kinds import (
    ANY_KIND,
    expectation,
    inner_fields,
    kind_of,
    kinds_of,
)
from graph_retry._review.forms.javascript import LostDigitsError, undamaged
from graph_retry._review.forms.strict_json import NotJsonError, read_json

_LITERALS = {"true": "true", "false": "false", "none": "null"}


class UnreadableFieldError(ValueError):
    """What came is no value of the field; the text names the field."""


class Field(NamedTuple):
    """One field of a typed value: its path in words, its schema node, and the schema around it."""

    name: str
    node: Any
    root: dict[str, Any]
    from_form: bool = False


def form_args(shown: dict[str, Any]) -> dict[str, Any]:
    """Return params as the clients' forms get them: Agent Inbox crashes on a top-level null.

    Example:
        >>> form_args({"prompt": "x", "seed": None})
        {'prompt': 'x', 'seed': 'null'}
    """
    return {name: "null" if value is None else value for name, value in shown.items()}


def restored(value: Any, shown: Any, field: Field) -> Any:
    """Return the field's new value, with the shown numbers where `value` merely repeats them.

    Text over a field that takes no text is read as JSON and replaces the field; text over one that
    does stays as typed. An object is merged into the one that was shown, key by key and at every
    depth; only a free-form object that comes from a form replaces it, because forms send whole
    fields. Lists are replaced.

    Raises:
        UnreadableFieldError: If the text cannot be read as what the field takes.

    Example:
        >>> root = {"properties": {"n": {"type": "number"}}}
        >>> restored("0.2", 0.7, Field("n", root["properties"]["n"], root))
        0.2
    """
    if is_object(value) and is_object(shown):
        named, others = inner_fields(field.node, field.root)
        if named or not field.from_form:
            merged = dict(shown)
            for key, each in value.items():
                below = field._replace(name=f"{field.name}.{key}", node=named.get(key, others))
                merged[key] = restored(each, shown.get(key), below)
            return merged
    if isinstance(value, str) and value != shown:
        value = _read(value, shown, field)
    try:
        return undamaged(value, shown)
    except LostDigitsError as error:
        raise UnreadableFieldError(f"`{field.name}`: {error}. Send all digits.") from None


def _read(text: str, shown: Any, field: Field) -> Any:
    """Read text typed over a field; one without a type takes what was shown in a form."""
    kinds = kinds_of(field.node, field.root)
    if kinds == ANY_KIND and field.from_form and shown is not None:
        kinds = frozenset({kind_of(shown)})
    readable, source, why = kinds, _LITERALS.get(text.strip().casefold(), text), ""
    if "string" in kinds:
        stays = isinstance(shown, str) and not field.from_form
        readable = frozenset[str]() if stays else kinds & {kind_of(shown), "null"} - {"string"}
        source = text
    try:
        found = read_json(source)
        if isinstance(found, str) and "string" not in kinds:
            found = read_json(found)
        if kind_of(found) in readable:
            return found
    except NotJsonError as error:
        why = f" ({error})" if kinds & {"array", "object"} else ""
    if "string" in kinds:
        return text
    raise UnreadableFieldError(
        f"`{field.name}` expects {expectation(kinds)}, not {literal(text, 80)}{why}."
    )
