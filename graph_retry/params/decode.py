"""From a view to a value: build it afresh, and refuse a view that says more than the value kept."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from graph_retry.params.invalid import ParamsInvalid, field_issues
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.params.kind import Kind
from graph_retry.params.node import OPAQUE, Node, Shape, entries_of, tree_of
from graph_retry.params.restore import UNKNOWN_TYPE, VALIDATOR_ERRORS, restore, validate
from graph_retry.records import Issue
from graph_retry.validate.issues import issue, pointer

_UNORDERED = ("message", "set", "frozenset", OPAQUE)


def build(
    kind: Kind,
    view: Any,
    types: dict[str, str],
    *,
    plain: bool = True,
    by_alias: bool | None = False,
    problems: list[Issue] | None = None,
) -> Any:
    """Build the value a view stands for; always a fresh one.

    Args:
        kind: The params type.
        view: The view, as state or a person gives it.
        types: The types map beside it.
        plain: Whether the view is JSON all through, and may be judged by JSON's rules.
        by_alias: Whether aliases are understood beside field names.
        problems: Collects the entries of `types` that no longer fit, where the type may still
            make sense of the JSON.

    Raises:
        ParamsInvalid: The view does not fit.
    """
    if not is_object(view):
        known = f"with the fields {_listed(kind.fields)}" if kind.fields else "of fields"
        message = f"must be a JSON object {known}, not a `{type(view).__name__}`"
        raise ParamsInvalid([issue("", message, "type", "object")])
    if kind.form != "object":
        wrong = [*_unknown(kind, view)]
        if kind.form == "bare" and "value" not in view:
            wrong.append(issue("/value", "Field required", "missing"))
        if wrong:
            raise ParamsInvalid(wrong)
    found: list[Issue] = []
    data = restore(view, tree_of(types), found)
    fatal = [entry for entry in found if kind.adapter is None or entry["code"] == UNKNOWN_TYPE]
    if fatal:
        raise ParamsInvalid(fatal)
    if problems is not None:
        problems.extend(found)
    if kind.form == "empty":
        return None
    at, payload = ("/value", data["value"]) if kind.form == "bare" else ("", data)
    if kind.adapter is None:
        return payload
    try:
        return validate(kind.adapter, payload, plain=plain and not types, by_alias=by_alias)
    except ValidationError as error:
        raise ParamsInvalid(field_issues(error, payload, at)) from None
    except VALIDATOR_ERRORS as error:
        message = f"its validation failed with {type(error).__name__}: {error}"
        raise ParamsInvalid([issue(at, message, "validator_error")]) from error


def lost_keys(kind: Kind, view: Any, kept: Shape, *, by_alias: bool = False) -> list[Issue]:
    """List the keys of a view that the value built from it did not keep."""
    aliases = kind.aliases if by_alias else {}
    return [
        _unknown_field(path, known) for path, known in _dropped(view, kept, aliases, kind.fields)
    ]


def _unknown(kind: Kind, view: dict[str, Any]) -> Iterator[Issue]:
    known = kind.fields or ()
    return (_unknown_field(pointer((key,)), known) for key in view if key not in known)


def _unknown_field(path: str, known: tuple[str, ...]) -> Issue:
    there = f"the known ones are {_listed(known)}" if known else "there are none"
    return issue(path, f"is not a known field; {there}", "unknown_field", _listed(known) or None)


def _listed(names: tuple[str, ...] | None) -> str:
    return ", ".join(f"`{name}`" for name in names or ())


def _dropped(
    view: Any, kept: Shape, aliases: dict[str, str], known: tuple[str, ...] | None, at: str = ""
) -> Iterator[tuple[str, tuple[str, ...]]]:
    node = kept.node or Node()
    if node.tag and (node.tag in _UNORDERED or node.tag.startswith("dict[")):
        return
    if not (is_object(view) or is_array(view)) or type(kept.json) is not type(view):
        return
    held = entries_of(kept.json)
    for token, item in entries_of(view).items():
        name = token if token in held else aliases.get(token, token)
        inner = at + pointer((token,))
        if name in held:
            part = Shape(held[name], node.children.get(name))
            yield from _dropped(item, part, aliases, None, inner)
        elif is_object(view):
            yield inner, tuple(held) if known is None else known
